"""A pull of the simulation: part by part, over the link there is, with all that can go wrong on the way."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from reconciler.core.observed import LocalImage
from reconciler.core.transfer import Relay
from reconciler.nodes.errors import ErrorKind, NodeError
from reconciler.nodes.protocols import OnProgress, Progress
from reconciler.testing.images import UNPACKED, SimImage
from reconciler.testing.line import Line
from reconciler.testing.store import Fetch

if TYPE_CHECKING:
    from reconciler.testing.node import SimNode

PARTS = 2
"""In so many parts a layer comes."""

NodeNamed = Callable[[str], "SimNode"]


@dataclass
class SimPull:
    """One image on its way to one node. `is_lying`: what comes is not what was asked for."""

    line: Line
    image: SimImage
    relay: Relay | None
    on_progress: OnProgress
    is_lying: bool
    done_bytes: int = 0

    async def run(self) -> LocalImage:
        """The image, once all of it is there. Raises `NodeError`; then no image is there that was not before."""
        node = self.line.node
        fetch = node.store.fetch(self.image)
        finished: list[str] = []
        is_done = False
        with self.line.fleet.traffic.using(self.relay.seed if self.relay else None):
            try:
                await self._download(fetch, finished)
                is_done = True
            finally:
                self._settle(fetch, finished, is_done=is_done)
        return node.load_image(self.image.digest)

    async def _download(self, fetch: Fetch, finished: list[str]) -> None:
        total = sum(layer.size_bytes for layer in fetch.download)
        for digest, part, count in _parts(fetch):
            await self.line.sleep(count / self.line.node.config.bytes_per_s)
            await self.line.reach()
            self.line.require_docker()
            via = self._carry(count, (digest, part))
            self.done_bytes += count
            self._insist_on_space()
            self.on_progress(Progress(self.done_bytes, total, f"pulling to {self.line.node.name}", via))
            if part == PARTS - 1:
                finished.append(digest)
        if self.is_lying:
            finished.clear()
            raise NodeError(ErrorKind.REFUSED, f"{self.image.reference}: what came is not what its digest says")

    def _carry(self, count: int, part: tuple[str, int]) -> str:
        """Count the bytes on the link they took. A seed that cannot be had any more is done without."""
        traffic, node = self.line.fleet.traffic, self.line.node
        seed = self._seed()
        if seed is None:
            traffic.direct(node.name, count)
            return ""
        holds = any(self.image.digest in image.digests and image.complete for image in seed.store.listed())
        traffic.passed_on(node.name, count, part, seed.name, holds=holds)
        return f"relayed by {seed.name}"

    def _seed(self) -> "SimNode | None":
        if self.relay is None:
            return None
        node, named = self.line.node, {item.name: item for item in self.line.fleet.nodes}
        seed = named.get(self.relay.seed)
        if seed is None:
            return None
        is_meant = seed is node or node.config.address in self.relay.peers
        is_up = seed.is_on and seed.is_linked and seed.config.has_python
        return seed if is_meant and is_up else None

    def _insist_on_space(self) -> None:
        node = self.line.node
        if self.done_bytes * (1 + UNPACKED) > node.free_bytes:
            raise NodeError(ErrorKind.NO_SPACE, f"no space left on device of {node.name}", "free some disk space")

    def _settle(self, fetch: Fetch, finished: list[str], *, is_done: bool) -> None:
        """What the disk keeps: the containerd store the layers that came, even of a pull that broke off."""
        node = self.line.node
        came = {layer.digest: layer.size_bytes for layer in fetch.download if layer.digest in finished}
        if node.store.kind == "containerd":
            node.free_bytes -= sum(came.values())
            node.store.kept_blobs |= set(came)
        if is_done:
            node.free_bytes -= sum(layer.unpacked_bytes or 0 for layer in fetch.unpack)


def _parts(fetch: Fetch) -> Iterator[tuple[str, int, int]]:
    """Digest, number and bytes of each part, in order."""
    for layer in fetch.download:
        first = layer.size_bytes // PARTS
        yield from ((layer.digest, part, first) for part in range(PARTS - 1))
        yield layer.digest, PARTS - 1, layer.size_bytes - first * (PARTS - 1)
