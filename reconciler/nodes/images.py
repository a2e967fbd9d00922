"""Brings images to one node by digest, and believes nothing but the content."""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from functools import partial

from reconciler.core.desired import ImagePin
from reconciler.core.observed import LocalImage
from reconciler.nodes import inspect
from reconciler.nodes.docker_engine import DockerEngine
from reconciler.nodes.docker_sdk import DockerSdk
from reconciler.nodes.doors import RegistryDoors
from reconciler.nodes.endpoints import endpoint_of
from reconciler.nodes.errors import ErrorKind, NodeError
from reconciler.nodes.local_images import local_images
from reconciler.nodes.protocols import OnProgress
from reconciler.nodes.pull_stream import PullStream, failure
from reconciler.nodes.ssh import SshSession

REMOVE_S = 120.0


class SshImages:
    """Pulls go through a registry of the controller's side where one is declared, else by the node's own way out."""

    def __init__(
        self,
        engine: DockerEngine,
        sdk: DockerSdk,
        endpoints: Mapping[str, str],
        connect: Callable[[], Awaitable[SshSession]],
    ) -> None:
        self._engine = engine
        self._sdk = sdk
        self._endpoints = endpoints
        self._doors = RegistryDoors(connect)
        self._turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._platform: str | None = None

    async def present(self, pin: ImagePin) -> LocalImage | None:
        """The usable local image with this content, or None."""
        return inspect.matching(await self._images(), pin)

    async def stage(self, pin: ImagePin, platform: str, on_progress: OnProgress) -> LocalImage:
        """Make the image present and usable, verified by content. Whoever asks for the same at the same time waits."""
        async with self._turns[pin.digest]:
            image = await self.present(pin)
            if image is None:
                image = await self._bring(pin, platform, on_progress)
            else:
                await self._check_platform(pin, image, platform)
            await self._keep(pin, image)
            return image

    async def _images(self, pulled: str | None = None) -> tuple[LocalImage, ...]:
        return await local_images(self._engine, self._own_platform, pulled)

    async def _own_platform(self) -> str:
        if self._platform is None:
            version = await self._engine.get("/version")
            self._platform = f"{version['Os']}/{version['Arch']}"
        return self._platform

    async def _bring(self, pin: ImagePin, platform: str, on_progress: OnProgress) -> LocalImage:
        if pin.kind == "id" or pin.repository is None:
            raise _only_local(pin, self._sdk.node)
        endpoint = endpoint_of(pin, self._endpoints)
        name = f"{endpoint.name_on_node if endpoint else pin.registry}/{pin.repository}"
        door: AbstractAsyncContextManager[None] = self._doors.to(endpoint) if endpoint else nullcontext()
        headers = {} if endpoint else await self._sdk.credentials(pin.registry)
        async with door:
            await self._pull(name, pin, platform, on_progress, headers)
        return await self._verified(name, pin, platform)

    async def _pull(
        self, name: str, pin: ImagePin, platform: str, on_progress: OnProgress, headers: Mapping[str, str]
    ) -> None:
        doing = f"pulling {pin.short} to {self._sdk.node}"
        params = {"fromImage": name, "tag": pin.digest, "platform": platform}
        stream = PullStream(doing)
        refuse = partial(failure, doing)
        async with self._engine.stream(doing, "POST", "/images/create", params, headers, refuse) as chunks:
            async for chunk in chunks:
                progress = stream.feed(chunk)
                if progress is not None:
                    on_progress(progress)
        stream.end()

    async def _verified(self, name: str, pin: ImagePin, platform: str) -> LocalImage:
        """Docker's "done" is no proof: it may hold another platform, or a manifest without its layers."""
        try:
            return await self._whole(pin, platform)
        except NodeError as error:
            if not error.is_transport:
                await self._forget(f"{name}@{pin.digest}")
            raise

    async def _whole(self, pin: ImagePin, platform: str) -> LocalImage:
        found = next((item for item in await self._images(pin.digest) if pin.digest in {item.id, *item.digests}), None)
        if found is not None:
            await self._check_platform(pin, found, platform)
        if found is None or not found.usable:
            node = self._sdk.node
            raise NodeError(
                ErrorKind.REFUSED, f"{pin.short} was pulled to {node} without error, but is not whole there"
            )
        return found

    async def _check_platform(self, pin: ImagePin, image: LocalImage, platform: str) -> None:
        """The classic store pulls an image of any platform by digest, and creates containers that cannot run."""
        found = await self._engine.get(f"/images/{image.id}/json")
        actual = f"{found.get('Os', '')}/{found.get('Architecture', '')}"
        if actual not in {platform, "/"}:
            message = f"{pin.short} is for {actual}, but {self._sdk.node} is {platform}"
            raise NodeError(ErrorKind.REFUSED, message, "pin an image that is built for the node's platform")

    async def _forget(self, reference: str) -> None:
        """Take away what was just pulled under this name. The error before counts, not one from here."""
        with suppress(NodeError):
            await self._sdk.call(f"removing {reference}", lambda api: api.remove_image(reference), REMOVE_S)

    async def _keep(self, pin: ImagePin, image: LocalImage) -> None:
        """A tag, so that `docker image prune` leaves it. In the containerd store it also gives the original name."""
        if pin.repository is None:
            return
        name, tag = f"{pin.registry}/{pin.repository}", inspect.keep_tag(pin.digest)
        if f"{name}:{tag}" not in image.names:
            await self._sdk.call(f"tagging {pin.short}", lambda api: api.tag(image.id, name, tag))


def _only_local(pin: ImagePin, node: str) -> NodeError:
    message = f"the local build {pin.short} is not on {node}, and an image id cannot be pulled"
    hint = f"`docker save {pin.digest} | ssh {node} docker load` brings it; or push it to a registry and pin its digest"
    return NodeError(ErrorKind.NOT_FOUND, message, hint)
