"""The images of one node: what is there, by content; bringing, naming and removing them."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from reconciler.core.desired import ImagePin
from reconciler.core.observed import LocalImage
from reconciler.core.transfer import Relay
from reconciler.images.errors import SupplyError
from reconciler.nodes import inspect
from reconciler.nodes.docker_engine import DockerEngine
from reconciler.nodes.docker_sdk import DockerSdk
from reconciler.nodes.errors import ErrorKind, NodeError
from reconciler.nodes.local_images import inventory, local_images
from reconciler.nodes.protocols import OnProgress
from reconciler.nodes.ssh import SshSession
from reconciler.nodes.store import Store, store_of

if TYPE_CHECKING:
    import docker

    from reconciler.nodes.distribution import Distribution

REMOVE_S = 120.0


class SshImages:
    """`distribution` is the controller's side, made with the first image that has to be brought."""

    def __init__(
        self,
        engine: DockerEngine,
        sdk: DockerSdk,
        distribution: "Callable[[], Distribution]",
        connect: Callable[[], Awaitable[SshSession]],
    ) -> None:
        self._engine = engine
        self._sdk = sdk
        self._distribution = distribution
        self._connect = connect
        self._turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._store: Store | None = None

    async def present(self, pin: ImagePin) -> LocalImage | None:
        """The usable local image with this content, or None."""
        return inspect.matching(await self._images(), pin)

    async def stage(
        self, pin: ImagePin, platform: str, on_progress: OnProgress, relay: Relay | None = None
    ) -> LocalImage:
        """Make the image present and usable, verified by content. Whoever asks for the same at the same time waits."""
        from reconciler.nodes.bringing import insist_on_platform  # noqa: PLC0415 - comes with the first image

        async with self._turns[pin.digest]:
            image = await self.present(pin)
            if image is None:
                image = await self._bring(pin, platform, on_progress, relay)
            else:
                await insist_on_platform(self._engine, pin, image, platform)
            await self._keep(pin, image)
            return image

    async def inventory(self) -> tuple[LocalImage, ...]:
        """All images with their layers, sizes and times."""
        return await inventory(self._engine, await self._images())

    async def remove(self, image: LocalImage) -> None:
        """Take away the image with all its names. Raises `NodeError` of kind CONFLICT while a container uses it."""
        for name in (*image.names, image.id):
            with _gone_is_fine():
                await self._sdk.call(f"removing {name}", partial(_remove, name), REMOVE_S)

    def export(self, reference: str) -> AsyncIterator[bytes]:
        """The archive of `docker save`, as it comes. Raises `NodeError`. Close it to end in the middle."""
        from reconciler.nodes import save_load  # noqa: PLC0415 - see above

        return save_load.export(self._distribution().ssh(self._sdk.node), reference)

    async def store(self) -> Store:
        """What the node's store is."""
        if self._store is None:
            self._store = await store_of(self._engine)
        return self._store

    async def _images(self) -> tuple[LocalImage, ...]:
        return await local_images(self._engine, self._platform)

    async def _platform(self) -> str:
        return (await self.store()).platform

    async def _bring(self, pin: ImagePin, platform: str, on_progress: OnProgress, relay: Relay | None) -> LocalImage:
        """On a connection of its own, which a pull needs to survive what the common one does not."""
        from reconciler.nodes.bringing import Bringing  # noqa: PLC0415 - see above

        store, distribution = await self.store(), self._distribution()
        connecting = asyncio.ensure_future(self._connect())
        try:
            bringing = Bringing(connecting, self._sdk, store, distribution, pin, platform, on_progress, relay)
            return await bringing.run()
        except SupplyError as error:
            message = f"{pin.short} cannot be brought to {self._sdk.node}: {error.message}"
            raise NodeError(ErrorKind.REFUSED, message, error.hint) from error
        finally:
            await _end(connecting)

    async def _keep(self, pin: ImagePin, image: LocalImage) -> None:
        """A tag, so that `docker image prune` leaves it. In the containerd store it also gives the original name."""
        if pin.repository is None:
            return
        name, tag = f"{pin.registry}/{pin.repository}", inspect.keep_tag(pin.digest)
        if f"{name}:{tag}" not in image.names:
            await self._engine.post(f"tagging {pin.short}", f"/images/{image.id}/tag", repo=name, tag=tag)


async def _end(connecting: "asyncio.Future[SshSession]") -> None:
    """Close the session, or have it no more."""
    connecting.cancel()
    await asyncio.wait([connecting])
    if not connecting.cancelled() and connecting.exception() is None:
        await connecting.result().close()


def _remove(name: str, api: "docker.APIClient") -> None:
    api.remove_image(name)


@contextmanager
def _gone_is_fine() -> Iterator[None]:
    """What is not there any more is what was wanted."""
    try:
        yield
    except NodeError as error:
        if error.kind is not ErrorKind.NOT_FOUND:
            raise
