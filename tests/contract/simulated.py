"""The contract's simulated subject."""

import hashlib
from collections.abc import Callable, Coroutine
from typing import Any, Literal

from reconciler.core.models import ModelFacts, ModelFile, ModelPlace
from reconciler.core.observed import UnknownKind
from reconciler.nodes.protocols import Fleet
from reconciler.testing import SimImage, SimulatedFleet, run_simulated, sim_nodes
from reconciler.testing.controllers import SimulatedController
from reconciler.testing.fleet import FIRST
from tests.contract.programs import behave
from tests.contract.subject import MODELS, NOWHERE, Content, Trouble

TINY = SimImage.named("registry.lab/tiny", behave)
ENGINE = SimImage.named("registry.lab/llamacpp")
FOREIGN = SimImage.named("registry.lab/foreign")
MISSING = SimImage.named("registry.lab/nothing")
NODES = {"classic": "n1", "containerd": "n2"}


class SimulatedSubject:
    """One node of a simulated fleet."""

    def __init__(self, store: str) -> None:
        foreign = SimImage(FOREIGN.reference, FOREIGN.digest, (("linux/arm64", 1000),))
        self._fleet = SimulatedFleet(sim_nodes(2), [TINY, ENGINE, foreign], seed=11)
        self.name = NODES[store]
        self.store = store
        self.image, self.engine_image, self.foreign_image, self.missing = TINY.pin, ENGINE.pin, FOREIGN.pin, MISSING.pin
        self._node = self._fleet.node(self.name)
        self._node.missing_paths.add(NOWHERE)
        self.platform = self._node.config.platform
        self.address = self._node.config.address
        assert MODELS not in self._node.missing_paths
        self.neighbour = next(name for name in NODES.values() if name != self.name)
        self.neighbour_address = self._fleet.node(self.neighbour).config.address

    def play(self, check: Callable[[Fleet], Coroutine[Any, Any, None]]) -> None:
        async def main() -> None:
            await check(self._fleet)
            await self._fleet.close()

        run_simulated(main(), seed=11)

    def play_rivals(self, check: Callable[[Fleet, Fleet], Coroutine[Any, Any, None]]) -> None:
        async def main() -> None:
            rival = self._fleet.second("rival")
            await check(self._fleet, rival)
            await rival.close()
            await self._fleet.close()

        run_simulated(main(), seed=11)

    def silence(self, fleet: Fleet) -> None:
        self._controller(fleet).is_cut = True

    def unsilence(self, fleet: Fleet) -> None:
        self._controller(fleet).is_cut = False

    def _controller(self, fleet: Fleet) -> SimulatedController:
        return fleet if isinstance(fleet, SimulatedController) else self._fleet.second(FIRST)

    def forget_images(self) -> None:
        for digest in (TINY.digest, ENGINE.digest):
            self._node.remove_image(digest)

    def put_model(self, node: str, path: str, content: Content) -> None:
        files = {path.rpartition("/")[2]: content} if isinstance(content, bytes) else content
        told = tuple(ModelFile(name, len(data), sha256(data)) for name, data in sorted(files.items()))
        there: Literal["file", "folder"] = "file" if isinstance(content, bytes) else "folder"
        self._fleet.node(node).models.models[path] = ModelFacts(ModelPlace("", ""), there, told)

    def take_model(self, node: str, path: str) -> None:
        self._fleet.node(node).models.models.pop(path, None)
        self._fleet.node(node).missing_paths.add(path)

    def fill_disk(self, leave_bytes: int) -> None:
        self._node.fill_disk(leave_bytes)

    def power_off_neighbour(self) -> None:
        self._fleet.node(self.neighbour).power_off()

    def trouble(self, what: Trouble) -> None:
        node = self._node
        if what == "link cut":
            node.cut_link()
        elif what == "power off":
            node.power_off()
        elif what == "docker down":
            node.stop_docker()
        elif what == "host key changed":
            node.deny(UnknownKind.HOST_KEY_CHANGED)
        else:
            node.drop_sessions()

    def mend(self) -> None:
        self._node.mend_link()
        self._node.power_on()
        self._node.start_docker()
        self._node.admit()


def sha256(data: bytes) -> str:
    """The checksum as facts have it."""
    return f"sha256:{hashlib.sha256(data).hexdigest()}"
