"""Brings one image to one node: the ladder of ways, the best first, and believes nothing but the content.

The controller serves the blobs, on the node's own loopback, to the node's own daemon, which fetches what it lacks and
verifies it. Where the controller cannot have them: the daemon's own way out, if the spec allows that; at last the
archive of another node's daemon.
"""

import asyncio
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial

from reconciler.core.desired import ImagePin
from reconciler.core.lock import PUBLISHED, LockedImage
from reconciler.core.observed import LocalImage, Source, SourceImage, SourceMissing
from reconciler.core.transfer import Relay
from reconciler.images.errors import SupplyError, SupplyErrorKind
from reconciler.nodes import hosts_toml, inspect, save_load
from reconciler.nodes.distribution import Distribution, Holder
from reconciler.nodes.docker_engine import DockerEngine
from reconciler.nodes.docker_sdk import DockerSdk
from reconciler.nodes.endpoints import listen_port, name_on_node
from reconciler.nodes.errors import ErrorKind, NodeError
from reconciler.nodes.local_images import local_images
from reconciler.nodes.protocols import OnProgress, Progress
from reconciler.nodes.pull_stream import PullStream, failure
from reconciler.nodes.relays import Way
from reconciler.nodes.ssh import SshSession
from reconciler.nodes.store import Store

REMOVE_S = 120.0
PAUSES_S = (1.0, 3.0)
"""Before a pull that broke off is tried again."""

NEWS_S = 0.1
"""How often a pull's news are read: Docker has hundreds a second, and reading takes time from its unpacking."""

HOPE_S = 1.0
"""How often it is looked at whether a pull can still end well."""

SUPPLY_KINDS = {
    SupplyErrorKind.NOT_FOUND: ErrorKind.NOT_FOUND,
    SupplyErrorKind.DENIED: ErrorKind.DENIED,
    SupplyErrorKind.NO_SPACE: ErrorKind.NO_SPACE,
}
"""All others are REFUSED."""


@dataclass
class Bringing:
    """One image on its way to one node. `connecting` gives the session that holds the pull: it is patient where a link
    is cut for a while, and is opened while the way is."""

    connecting: asyncio.Future[SshSession]
    sdk: DockerSdk
    store: Store
    distribution: Distribution
    pin: ImagePin
    platform: str
    on_progress: OnProgress
    relay: Relay | None

    @property
    def node(self) -> str:
        """The node's name."""
        return self.sdk.node

    async def run(self) -> LocalImage:
        """The image, brought and verified. Raises `NodeError`, also when the node's daemon says that all went well."""
        source = await self.distribution.described(self.pin, self.node)
        if isinstance(source, SourceImage) and source.image is not None:
            return await self._known(source.image)
        return await self._otherwise(_unsupplied(self.pin, self.node, source))

    async def _known(self, image: LockedImage) -> LocalImage:
        """Its content is known down to the layers: it is served from here, if its bytes can be had.

        Content that is there without the digest (it was loaded from an archive) is pulled as well: that moves no layer,
        and gives it the digest by which every later look finds it.
        """
        self._insist_on_platform(image)
        self.pin = replace(self.pin, configs=tuple(item.config for item in image.platforms))
        blobs = self.distribution.supply.blobs_of(self.pin, self.platform)
        try:
            return await self._served(blobs)
        except NodeError as error:
            cause = self.distribution.supply_error(blobs)
            if cause is None or error.is_transport or error.kind is ErrorKind.NO_SPACE:
                raise
            told = _told(self.pin, self.node, cause)
            if cause.kind is SupplyErrorKind.NO_SPACE:  # a full disk here is to be mended, not to be got around
                raise told from error
            return await self._otherwise(told)

    def _insist_on_platform(self, image: LockedImage) -> None:
        if image.platform(self.platform) is None:
            there = ", ".join(item.platform for item in image.platforms) or "no platform"
            message = f"{self.pin.short} is made for {there}, but {self.node} is {self.platform}"
            raise NodeError(ErrorKind.REFUSED, message, "pin an image that is built for the node's platform")

    # from here

    async def _served(self, blobs: Mapping[str, int]) -> LocalImage:
        """Pulled from the controller's vault, in a few tries: the containerd store goes on from where it broke off."""
        for pause_s in PAUSES_S:
            try:
                return await self._pulled_from_here(blobs)
            except NodeError as error:
                if not await self._may_go_better(error, blobs):
                    raise
            await asyncio.sleep(pause_s)
        return await self._pulled_from_here(blobs)

    async def _may_go_better(self, error: NodeError, blobs: Mapping[str, int]) -> bool:
        """Bytes that went bad in the vault are taken out, and fetched anew; or the way broke off: a relay that died."""
        if error.is_transport or error.kind in {ErrorKind.NO_SPACE, ErrorKind.CONFLICT}:
            return False
        damaged = await self.distribution.discard_damaged(blobs)
        if not damaged and self.distribution.supply_error(blobs) is None:
            return True
        return await self.distribution.add_holders(self.pin, but=self.node) or damaged

    async def _pulled_from_here(self, blobs: Mapping[str, int]) -> LocalImage:
        port = listen_port(self.pin)
        way = self.distribution.way(self.node, self.pin, blobs, port, self.relay)
        async with way as found, self._name(port) as name, self.distribution.turn():
            say = partial(_say_way, self.on_progress, found)
            await self._while_it_may_come(self._pull(name, say, {}, blobs), blobs)
            return await self._verified(name)

    async def _while_it_may_come(self, pull: Coroutine[None, None, None], blobs: Mapping[str, int]) -> None:
        """The pull, unless what it waits for cannot be had: the classic store would ask for it for minutes."""
        pulling = asyncio.ensure_future(pull)
        try:
            while not pulling.done():
                await asyncio.wait([pulling], timeout=HOPE_S)
                if not pulling.done() and self.distribution.is_hopeless(blobs):
                    raise NodeError(ErrorKind.REFUSED, f"{self.pin.short} cannot be had")
            await pulling
        finally:
            pulling.cancel()
            await asyncio.gather(pulling, return_exceptions=True)

    @asynccontextmanager
    async def _name(self, port: int) -> AsyncIterator[str]:
        """What the daemon calls it while it comes from here: the original name where its settings can say so."""
        elsewhere = f"{name_on_node(port)}/{self.pin.repository}"
        original = f"{self.pin.registry}/{self.pin.repository}"
        if original == elsewhere or not hosts_toml.may_keep_name(self.store.kind, self.store.docker_version):
            yield elsewhere
            return
        session = await asyncio.shield(self.connecting)
        async with hosts_toml.pointing(session, self.pin.registry or "", port) as kept:
            yield original if kept else elsewhere

    # otherwise

    async def _otherwise(self, told: NodeError) -> LocalImage:
        """Without the controller's help. `told` is why, and what is raised where nobody else has it either."""
        if self.pin.registry in self.distribution.from_nodes:
            return await self._by_its_own_way()
        failures: list[NodeError] = []
        for holder in await self.distribution.holders(self.pin, but=self.node):
            try:
                found = await self._copied(holder) if holder.can_save else None
            except NodeError as error:
                if error.kind is ErrorKind.NO_SPACE:
                    raise
                failures.append(error)
                continue
            if found is not None:
                return found
        raise _with(told, failures)

    async def _by_its_own_way(self) -> LocalImage:
        """The node's daemon asks the registry itself, with the login that the controller has for it."""
        name = f"{self.pin.registry}/{self.pin.repository}"
        async with self.distribution.turn():
            await self._pull(name, self.on_progress, await self.sdk.credentials(self.pin.registry), {})
            return await self._verified(name)

    async def _copied(self, holder: Holder) -> LocalImage | None:
        """Loaded from the archive of another node; None when what came is not it.

        Its digest is lost on the way to or from a classic store: then the content decides, and where the manifests are
        at hand, a pull that moves no layer gives the digest back.
        """
        async with self.distribution.turn():
            ends = self.distribution.ssh(holder.node), self.distribution.ssh(self.node)
            await save_load.copy(*ends, holder.reference, partial(_say_copied, self.on_progress, holder.node))
        found = inspect.matching(await self._images(), self.pin)
        if found is None and self.pin.kind == "digest" and self.pin.configs:
            with suppress(NodeError):
                return await self._pulled_from_here(self.distribution.supply.blobs_of(self.pin, self.platform))
        return found

    # pulling

    async def _pull(
        self, name: str, on_progress: OnProgress, headers: Mapping[str, str], sizes: Mapping[str, int]
    ) -> None:
        doing = f"pulling {self.pin.short} to {self.node}"
        params = {"fromImage": name, "tag": self.pin.digest, "platform": self.platform}
        stream = PullStream(doing, sizes)
        refuse = partial(failure, doing)
        engine = await self._engine()
        async with engine.stream(doing, "POST", "/images/create", params, headers, refuse) as chunks:
            async for chunk in engine.lively(doing, chunks):
                progress = stream.feed(chunk)
                if progress is not None:
                    on_progress(progress)
                if not stream.is_over:
                    await asyncio.sleep(NEWS_S)
        stream.end()

    async def _images(self, pulled: str | None = None) -> tuple[LocalImage, ...]:
        return await local_images(await self._engine(), self._own_platform, pulled)

    async def _engine(self) -> DockerEngine:
        return DockerEngine(await asyncio.shield(self.connecting))

    async def _own_platform(self) -> str:
        return self.store.platform

    async def _verified(self, name: str) -> LocalImage:
        """Docker's "done" is no proof: it may hold another platform, or a manifest without its layers."""
        try:
            return await self._whole()
        except NodeError as error:
            if not error.is_transport:
                await self._forget(f"{name}@{self.pin.digest}")
            raise

    async def _whole(self) -> LocalImage:
        images = await self._images(self.pin.digest)
        found = next((item for item in images if self.pin.digest in {item.id, *item.digests}), None)
        found = found or inspect.matching(images, self.pin)
        if found is not None:
            await insist_on_platform(await self._engine(), self.pin, found, self.platform)
        if found is None or not found.usable:
            message = f"{self.pin.short} was pulled to {self.node} without error, but is not whole there"
            raise NodeError(ErrorKind.REFUSED, message)
        return found

    async def _forget(self, reference: str) -> None:
        """Take away what was just pulled under this name. The error before counts, not one from here."""
        with suppress(NodeError):
            await self.sdk.call(f"removing {reference}", lambda api: api.remove_image(reference), REMOVE_S)


async def insist_on_platform(engine: DockerEngine, pin: ImagePin, image: LocalImage, platform: str) -> None:
    """The classic store pulls an image of any platform by digest, and creates containers that cannot run."""
    found = await engine.get(f"/images/{image.id}/json")
    actual = f"{found.get('Os', '')}/{found.get('Architecture', '')}"
    if actual not in {platform, "/"}:
        node = engine.session.target.name
        message = f"{pin.short} is for {actual}, but {node} is {platform}"
        raise NodeError(ErrorKind.REFUSED, message, "pin an image that is built for the node's platform")


def _unsupplied(pin: ImagePin, node: str, source: Source) -> NodeError:
    if pin.kind == "id":
        message = f"the local build {pin.short} is not on {node}, nor on another node that can be reached"
        hint = "build it on one node of this fleet, or `fleet pin --publish` it from there and pin that digest"
        return NodeError(ErrorKind.NOT_FOUND, message, hint)
    reason = getattr(source, "reason", "")
    kind = ErrorKind.NOT_FOUND if isinstance(source, SourceMissing) else ErrorKind.REFUSED
    hint = f"registries.{pin.registry} of the spec says how it is reached; `docker login {pin.registry}` logs in"
    if pin.registry == PUBLISHED:
        hint = (
            f"`fleet pin {pin.reference} --from NODE --publish`, on a node that has it, brings it back into the vault"
        )
    return NodeError(kind, f"{pin.short} cannot be brought to {node}: {reason}", hint)


def _with(told: NodeError, failures: Sequence[NodeError]) -> NodeError:
    """Why it cannot be had, and what came of asking other nodes for their archives."""
    if not failures:
        return told
    return NodeError(told.kind, "; ".join((told.message, *(error.message for error in failures))), told.hint)


def _told(pin: ImagePin, node: str, cause: SupplyError) -> NodeError:
    """What a daemon says of a source that fails is only that it failed: the source itself knows why."""
    kind = SUPPLY_KINDS.get(cause.kind, ErrorKind.REFUSED)
    return NodeError(kind, f"{pin.short} cannot be brought to {node}: {cause.message}", cause.hint)


def _say_way(on_progress: OnProgress, way: Way, news: Progress) -> None:
    on_progress(replace(news, via=f"relayed by {way.seed.node}" if way.seed else ""))


def _say_copied(on_progress: OnProgress, source: str, count: int) -> None:
    on_progress(Progress(count, None, f"copying the archive of {source}"))
