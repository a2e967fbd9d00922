"""The doors of a simulated node: `reconciler.nodes.protocols` on top of the simulated world."""

import asyncio
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from functools import partial

from reconciler.core.desired import ContainerSpec, ImagePin
from reconciler.core.model_stock import FileProof
from reconciler.core.models import ModelCopy, ModelFacts, ModelPlace
from reconciler.core.observed import Container, LocalImage, NodeFacts
from reconciler.core.secret_marks import Mark
from reconciler.core.transfer import Relay
from reconciler.nodes.errors import ErrorKind, NodeError
from reconciler.nodes.protocols import HttpReply, OnProgress, ProgramEnd, Progress
from reconciler.testing import answers
from reconciler.testing.containers import SimContainer
from reconciler.testing.line import CALL_S, Line, forever
from reconciler.testing.network import Network
from reconciler.testing.node import SimNode
from reconciler.testing.pull import PARTS, SimPull
from reconciler.testing.registry import SimRegistry


class SimObserver:
    """See `protocols.Observer`."""

    def __init__(self, line: Line) -> None:
        self._line = line

    async def observe(self, paths: Collection[str] = ()) -> NodeFacts:
        """All facts of the node, and which of `paths` are not there."""
        return await self._line.ask("observe", "", lambda: self._line.node.facts(paths))


class SimContainers:
    """See `protocols.Containers`."""

    def __init__(self, line: Line) -> None:
        self._line = line
        self._runtime = line.node.runtime

    async def inspect(self, ref: str) -> Container | None:
        """The container now, or None."""
        return await self._line.ask("inspect", ref, lambda: self._line.node.container(ref))

    async def create(
        self, name: str, spec: ContainerSpec, image_id: str, labels: Mapping[str, str], secrets: Mapping[str, str]
    ) -> str:
        """Create without starting; the new id."""
        node = self._line.node
        return await self._line.ask("create", name, lambda: node.create(name, spec, image_id, labels, secrets))

    async def start(self, ref: str) -> None:
        """Start; no effect when it runs."""
        await self._line.ask("start", ref, lambda: self._runtime.start(ref))

    async def stop(self, ref: str, grace_s: float) -> None:
        """Stop; returns when it is stopped."""

        async def stop() -> None:
            self._runtime.stop(ref, grace_s)
            await self._line.until(lambda: not self._runtime.is_running(ref))

        await self._line.call("stop", ref, stop, grace_s + CALL_S)

    async def rename(self, ref: str, name: str) -> None:
        """Give another name."""
        await self._line.ask("rename", ref, lambda: self._runtime.rename(ref, name))

    async def remove(self, ref: str) -> None:
        """Remove a stopped container."""
        await self._line.ask("remove", ref, lambda: self._runtime.remove(ref))

    async def logs(self, ref: str, tail: int, since: str = "") -> Sequence[str]:
        """The last lines."""
        return await self._line.ask("logs", ref, lambda: _last(self._runtime.require(ref), tail, since))

    async def run(self, ref: str, words: Sequence[str], timeout_s: float) -> ProgramEnd:
        """Run a program in a running container."""

        async def run() -> ProgramEnd:
            found = self._runtime.require(ref)
            if not found.is_running:
                raise NodeError(ErrorKind.CONFLICT, f"Container {found.id} is not running")
            end = found.behaviour.run(tuple(words))
            return ProgramEnd(*end) if end is not None else await forever()

        return await self._line.call("run", ref, run, timeout_s)

    async def live_marks(self, ref: str, mark: Mark) -> Mapping[str, str]:
        """The marks of what its secrets are in it now."""

        def told() -> dict[str, str]:
            found = self._runtime.find(ref)
            return found.live_marks(mark) if found else {}

        return await self._line.ask("inspect", ref, told)

    async def follow(self, ref: str, tail: int) -> AsyncIterator[str]:
        """The last lines and each new one until it stops."""
        found = await self._line.ask("follow", ref, lambda: self._runtime.require(ref), deadline_s=None)
        seen = max(0, len(found.logs) - tail)
        while True:
            fresh = tuple(found.logs[seen:])
            for line in found.told(fresh):
                yield line
            seen += len(fresh)
            if not found.is_running and seen == len(found.logs):
                return
            await self._line.until(partial(_has_news, found, seen))


class SimImages:
    """See `protocols.Images`."""

    def __init__(self, line: Line, registry: SimRegistry) -> None:
        self._line = line
        self._registry = registry

    async def present(self, pin: ImagePin) -> LocalImage | None:
        """The usable local image with this content, or None."""
        return await self._line.ask("present", pin.reference, lambda: self._line.node.facts().image_for(pin))

    async def stage(
        self, pin: ImagePin, platform: str, on_progress: OnProgress, relay: Relay | None = None
    ) -> LocalImage:
        """Bring the image; no effect when it is there."""

        async def stage() -> LocalImage:
            found = self._line.node.facts().image_for(pin)
            if found is not None:
                return found
            image = self._registry.image_for(pin, platform)
            return await SimPull(self._line, image, relay, on_progress, pin.digest in self._registry.lying).run()

        return await self._line.call("stage", pin.reference, stage, None)

    async def inventory(self) -> tuple[LocalImage, ...]:
        """All images with their layers, sizes and times."""
        return await self._line.ask("inventory", "", self._line.node.inventory)

    async def remove(self, image: LocalImage) -> None:
        """Take away the image with all its names."""
        node = self._line.node
        await self._line.ask("remove-image", image.id, lambda: node.remove_local(image.id))


class SimModels:
    """See `protocols.Models`."""

    def __init__(self, line: Line) -> None:
        self._line = line

    async def look(self, place: ModelPlace, hashes: Collection[str] = ()) -> ModelFacts:
        """What is there."""

        async def look() -> ModelFacts:
            return self._line.node.models.look(place, hashes)

        return await self._line.call("model-look", place.path, look, needs_docker=False)

    async def prove(
        self, folder: str, files: Collection[str], hashes: Collection[str], on_progress: OnProgress
    ) -> Mapping[str, FileProof]:
        """What files say, all at once."""

        async def prove() -> Mapping[str, FileProof]:
            return self._line.node.models.prove(folder, files, hashes)

        return await self._line.call("model-prove", folder, prove, needs_docker=False)

    async def fetch(self, copy: ModelCopy, on_progress: OnProgress) -> None:
        """Part by part, over the link there is."""
        line = self._line

        async def fetch() -> None:
            giver = next(item for item in line.fleet.nodes if item.name == copy.source)
            for part in range(1, PARTS + 1):
                await line.sleep(copy.bytes / PARTS / line.node.config.bytes_per_s)
                await line.reach()
                if not (giver.is_on and giver.is_linked):
                    raise NodeError(ErrorKind.REFUSED, f"{giver.name} ended in the middle of it")
                on_progress(Progress(copy.bytes * part // PARTS, copy.bytes, f"from {giver.name}"))
            if copy.bytes > line.node.free_bytes:
                raise NodeError(ErrorKind.NO_SPACE, f"no space left on device of {line.node.name}")
            line.node.free_bytes -= copy.bytes
            line.node.models.receive(giver.models, copy)

        await line.call("model-fetch", copy.target, fetch, None, needs_docker=False)

    async def adopt(self, copy: ModelCopy) -> None:
        """Another name, at once."""

        async def adopt() -> None:
            self._line.node.models.adopt(copy)

        await self._line.call("model-adopt", copy.target, adopt, needs_docker=False)


class SimEngines:
    """See `protocols.EngineAccess`."""

    def __init__(self, line: Line, network: Network) -> None:
        self._line = line
        self._network = network

    async def http(
        self, address: str, port: int, method: str, path: str, body: Mapping[str, object] | None, timeout_s: float
    ) -> HttpReply:
        """One HTTP request. A door that is not an engine's answers 404."""

        async def ask() -> HttpReply:
            target = await self._open(address, port)
            found = self._network.listener(target, address, port)
            if found is None:
                return HttpReply(404, b"")
            await asyncio.sleep(answers.takes_s(found, body))
            peers = (self._network.accepts(target, *peer) for peer in found.behaviour.peers)
            reply = answers.reply(found, method, path, body, is_whole=all(peers))
            return reply or await forever()

        ref = f"{address}:{port}{path}"
        return await self._line.call("http", ref, ask, timeout_s, needs_docker=False)

    async def accepts(self, address: str, port: int, timeout_s: float) -> bool:
        """Whether a connection is had. Silence within `timeout_s` counts as no."""

        async def ask() -> bool:
            return self._network.accepts(self._line.node, address, port)

        return await self._line.call("accepts", f"{address}:{port}", ask, timeout_s, needs_docker=False)

    async def _open(self, address: str, port: int) -> SimNode:
        target = self._network.target(self._line.node, address)
        if self._network.is_silent(self._line.node, target):
            await forever()
        if not self._network.is_open(target, address, port):
            raise NodeError(ErrorKind.REFUSED, f"nothing listens on {address}:{port}")
        return target


def _has_news(found: SimContainer, seen: int) -> bool:
    return len(found.logs) > seen or not found.is_running


def _last(found: SimContainer, count: int, since: str) -> tuple[str, ...]:
    """Of an earlier life nothing is told to who asks for lines since the start of this one."""
    first = found.first_line if since and since >= found.fact().started_at else 0
    return found.told(found.logs[max(first, len(found.logs) - count) :])
