"""One controller's way to the simulated nodes. Several share the nodes, and nothing else."""

import asyncio
import random
from typing import TYPE_CHECKING

from reconciler.core.desired import ImagePin
from reconciler.core.observed import Source, SourceUnknown, Unknown, UnknownKind
from reconciler.nodes.errors import NodeError, NodeUnknownError
from reconciler.testing.doors import SimContainers, SimEngines, SimImages, SimModels, SimObserver
from reconciler.testing.faults import MUTATING, Call, Fault, Operation
from reconciler.testing.hooks import SimHooks
from reconciler.testing.leases import SimLeases
from reconciler.testing.line import Line, forever
from reconciler.testing.node import SimNode

if TYPE_CHECKING:
    from reconciler.testing.fleet import SimulatedFleet


class SimulatedNode:
    """An open session with a simulated node. See `protocols.Node`."""

    def __init__(self, line: Line) -> None:
        network, registry = line.controller.fleet.network, line.controller.fleet.registry
        self.name = line.node.name
        self.observer = SimObserver(line)
        self.containers = SimContainers(line)
        self.images = SimImages(line, registry)
        self.models = SimModels(line)
        self.engines = SimEngines(line, network)
        self.leases = SimLeases(line)
        self.line = line

    async def close(self) -> None:
        """End the session."""
        self.line.close()


class SimulatedController:
    """See `protocols.Fleet`. `is_cut`: its own network is down, while the nodes go on without it."""

    def __init__(self, fleet: "SimulatedFleet", name: str, seed: int) -> None:
        self.fleet = fleet
        self.name = name
        self.is_cut = False
        self.sources = SimSources(self)
        self.hooks = SimHooks()
        self._seed = seed
        self._dice: dict[str, random.Random] = {}
        self._sessions: dict[str, SimulatedNode] = {}
        self._dead_loop: asyncio.AbstractEventLoop | None = None

    @property
    def sent_bytes(self) -> int:
        """Bytes of images that left the controllers."""
        return self.fleet.traffic.from_controller

    async def connect(self, node: str, deadline_s: float) -> SimulatedNode:
        """An open session. Raises `NodeUnknownError`."""
        faults = self.begin(node, "connect", "")
        open_one = self._open(node)
        if open_one is not None and not faults:
            return open_one
        try:
            async with asyncio.timeout(deadline_s):
                return await self._connect(node, faults)
        except TimeoutError:
            fact = Unknown(node, UnknownKind.TIMEOUT, f"no answer in {deadline_s:g} s")
            raise NodeUnknownError(fact) from None
        except NodeUnknownError:
            raise
        except NodeError as error:
            raise NodeUnknownError(error.as_unknown(node)) from error

    async def _connect(self, name: str, faults: tuple[Fault, ...]) -> SimulatedNode:
        node = self.fleet.named(name)
        if node is None:
            raise NodeUnknownError(Unknown(name, UnknownKind.UNRESOLVED, f"no address for {name}"))
        await asyncio.sleep(self._dice_of(name).uniform(0.1, 0.3))
        self.fleet.world.sync()
        await self._strike(faults, is_late=False)
        if any(fault.mode == "hang" for fault in faults) or not node.is_linked or self.is_cut:
            await forever()
        if node.denial is not None:
            raise NodeUnknownError(node.denial)
        if not node.is_on:
            raise NodeUnknownError(Unknown(name, UnknownKind.REFUSED, f"{name} refuses connections"))
        session = self._open(name) or self._new_session(node)
        await self._strike(faults, is_late=True)
        return session

    def _open(self, node: str) -> SimulatedNode | None:
        session = self._sessions.get(node)
        return None if session is None or session.line.is_lost else session

    def _new_session(self, node: SimNode) -> SimulatedNode:
        line = Line(self, node, self.fleet.world, node.session_epoch, self._dice_of(node.name))
        self._sessions[node.name] = SimulatedNode(line)
        return self._sessions[node.name]

    def _dice_of(self, node: str) -> random.Random:
        if node not in self._dice:
            self._dice[node] = random.Random(f"{self._seed} {node}")  # noqa: S311 - repeatable on purpose
        return self._dice[node]

    async def _strike(self, faults: tuple[Fault, ...], *, is_late: bool) -> None:
        for fault in faults:
            if fault.mode == "action" and fault.is_late == is_late:
                self.fleet.act(fault)
            if fault.mode == "delay" and fault.is_late == is_late:
                await asyncio.sleep(fault.delay_s)
                self.fleet.world.sync()
            if fault.mode == ("lose-reply" if is_late else "fail"):
                raise NodeError(fault.kind, fault.message)

    async def close(self) -> None:
        """End all its sessions."""
        self.drop()
        self._sessions.clear()

    def drop(self) -> None:
        """All its sessions end now; new ones can be had."""
        for session in self._sessions.values():
            session.line.close()

    def die(self, loop: asyncio.AbstractEventLoop) -> None:
        """No call of it in this loop has any effect from now on."""
        self._dead_loop = loop
        self.drop()

    def begin(self, node: str, operation: Operation, ref: str) -> tuple[Fault, ...]:
        """Log a call; the faults that strike at it."""
        if self._dead_loop is asyncio.get_running_loop():
            raise NodeUnknownError(Unknown(node, UnknownKind.LOST, "the controller is dead"))
        self.fleet.world.sync()
        call = Call(self.fleet.world.now_s, node, operation, ref, operation in MUTATING, self.name)
        return self.fleet.log(call)


class SimSources:
    """See `protocols.Sources`."""

    def __init__(self, controller: SimulatedController) -> None:
        self._controller = controller

    async def describe(self, pin: ImagePin) -> Source:
        """What the registry says of the image."""
        faults = self._controller.begin("", "describe", pin.reference)
        await asyncio.sleep(0.05)
        if any(fault.mode in {"fail", "lose-reply", "hang"} for fault in faults):
            return SourceUnknown(pin.digest, faults[0].message)
        return self._controller.fleet.registry.describe(pin)
