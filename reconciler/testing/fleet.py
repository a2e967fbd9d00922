"""A whole fleet in one process: nodes, image source, engines and faults, the same from the same seed."""

import asyncio
import random
from collections.abc import Callable, Sequence
from typing import Never

from reconciler.core.desired import ImagePin
from reconciler.core.observed import Source, SourceUnknown, Unknown, UnknownKind
from reconciler.nodes.errors import NodeError, NodeUnknownError
from reconciler.testing.clock import LoopClock
from reconciler.testing.doors import SimContainers, SimEngines, SimImages, SimObserver
from reconciler.testing.faults import MUTATING, Call, Fault, Faults, Operation
from reconciler.testing.history import Happening, Overlap, overlaps
from reconciler.testing.images import SimImage
from reconciler.testing.line import Line, forever
from reconciler.testing.network import Network
from reconciler.testing.node import SimNode, SimNodeConfig
from reconciler.testing.registry import SimRegistry
from reconciler.testing.traffic import Traffic
from reconciler.testing.world import World


class ControllerKilled(SystemExit):
    """The controller was killed, as by SIGKILL: no call of its loop has any effect from now on."""


class SimulatedNode:
    """An open session with a simulated node. See `protocols.Node`."""

    def __init__(self, line: Line, network: Network, registry: SimRegistry) -> None:
        self.name = line.node.name
        self.observer = SimObserver(line)
        self.containers = SimContainers(line)
        self.images = SimImages(line, registry)
        self.engines = SimEngines(line, network)
        self.line = line

    async def close(self) -> None:
        """End the session: its node's only one."""
        self.line.node.drop_sessions()


class SimulatedFleet:
    """See `protocols.Fleet`. Lives on when the loop ends (a controller died) and goes on in the next one.

    `images` are what the registry has; a node has those its configuration names. `calls` is every call through a door,
    in order. Node handles (`node(name)`) are for what happens to a machine without us.
    """

    def __init__(self, nodes: Sequence[SimNodeConfig], images: Sequence[SimImage] = (), seed: int = 0) -> None:
        self.calls: list[Call] = []
        self._clock = LoopClock()
        self._world = World(self._clock)
        self._images = {image.digest: image for image in images}
        self._nodes = {config.name: SimNode(config, self._world, self._images, seed) for config in nodes}
        self._network = Network(self._nodes)
        self._dice = {name: random.Random(f"{seed} {name}") for name in self._nodes}  # noqa: S311 - repeatable on purpose
        self._faults = Faults()
        self._sessions: dict[str, SimulatedNode] = {}
        self._dead_loop: asyncio.AbstractEventLoop | None = None
        self.registry = SimRegistry(self._images)
        self.traffic = Traffic()
        self.sources = SimSources(self)
        for node in self._nodes.values():
            node.runtime.accepts = self._from(node)

    def _from(self, node: SimNode) -> Callable[[str, int], bool]:
        return lambda address, port: self._network.accepts(node, address, port)

    # protocols.Fleet

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
        node = self._nodes.get(name)
        if node is None:
            raise NodeUnknownError(Unknown(name, UnknownKind.UNRESOLVED, f"no address for {name}"))
        await asyncio.sleep(self._dice[name].uniform(0.1, 0.3))
        self._world.sync()
        self._strike(faults, is_late=False)
        if any(fault.mode == "hang" for fault in faults) or not node.is_linked:
            await forever()
        if node.denial is not None:
            raise NodeUnknownError(node.denial)
        if not node.is_on:
            raise NodeUnknownError(Unknown(name, UnknownKind.REFUSED, f"{name} refuses connections"))
        session = self._open(name) or self._new_session(node)
        self._strike(faults, is_late=True)
        return session

    def _open(self, node: str) -> SimulatedNode | None:
        session = self._sessions.get(node)
        return None if session is None or session.line.is_lost else session

    def _new_session(self, node: SimNode) -> SimulatedNode:
        line = Line(self, node, self._world, node.session_epoch, self._dice[node.name])
        self._sessions[node.name] = SimulatedNode(line, self._network, self.registry)
        return self._sessions[node.name]

    def _strike(self, faults: tuple[Fault, ...], *, is_late: bool) -> None:
        for fault in faults:
            if fault.mode == "action" and fault.is_late == is_late:
                self.act(fault)
            if fault.mode == ("lose-reply" if is_late else "fail"):
                raise NodeError(fault.kind, fault.message)

    async def close(self) -> None:
        """End all sessions."""
        for session in self._sessions.values():
            await session.close()
        self._sessions.clear()

    # what tests do

    @property
    def now_s(self) -> float:
        """Virtual seconds since the first call."""
        self._world.sync()
        return self._world.now_s

    @property
    def nodes(self) -> tuple[SimNode, ...]:
        """All nodes, as given."""
        return tuple(self._nodes.values())

    def node(self, name: str) -> SimNode:
        """The machine itself."""
        return self._nodes[name]

    def inject(self, *faults: Fault) -> None:
        """Let these go wrong from now on."""
        self._faults.inject(*faults)

    def heal(self) -> None:
        """Forget the injected faults; the nodes stay as they are."""
        self._faults.clear()

    def kill_controller(self) -> Never:
        """End the running loop by `ControllerKilled`. The nodes live on, for the next `run_simulated`.

        What the code under test does while it is torn down reaches no node; a store it writes to is its own affair.
        """
        self._dead_loop = asyncio.get_running_loop()
        for node in self._nodes.values():
            node.drop_sessions()
        raise ControllerKilled

    def after(self, delay_s: float, action: Callable[["SimulatedFleet"], None]) -> None:
        """Let `action` happen `delay_s` virtual seconds from now."""
        self._world.sync()
        self._world.after(delay_s, lambda: action(self))

    def add_foreign(self, node: str, container: str, ports: tuple[int, ...] = (), gpus: int = 0) -> str:
        """A running container that is not ours; its id."""
        return self._nodes[node].add_foreign(container, ports, gpus)

    @property
    def mutations(self) -> tuple[Call, ...]:
        """The calls that change something, whether they succeeded or not."""
        return tuple(call for call in self.calls if call.mutating)

    @property
    def sent_bytes(self) -> int:
        """Bytes of images that left the controller; `traffic` has those of every other link."""
        return self.traffic.from_controller

    def history(self, node: str | None = None) -> tuple[Happening, ...]:
        """What happened on a node, or on all of them, up to now."""
        self._world.sync()
        return tuple(item for item in self._world.history if node in {None, item.node})

    def overlaps(self) -> tuple[Overlap, ...]:
        """Containers that ran together on a node and should not have: see `history.overlaps`."""
        return overlaps(self.history())

    # what doors do

    def begin(self, node: str, operation: Operation, ref: str) -> tuple[Fault, ...]:
        """Log a call; the faults that strike at it."""
        if self._dead_loop is asyncio.get_running_loop():
            raise NodeUnknownError(Unknown(node, UnknownKind.LOST, "the controller is dead"))
        self._world.sync()
        call = Call(self._world.now_s, node, operation, ref, operation in MUTATING)
        self.calls.append(call)
        return self._faults.of(call)

    def act(self, fault: Fault) -> None:
        """Run a fault's action."""
        if fault.action is not None:
            fault.action(self)


class SimSources:
    """See `protocols.Sources`."""

    def __init__(self, fleet: SimulatedFleet) -> None:
        self._fleet = fleet

    async def describe(self, pin: ImagePin) -> Source:
        """What the registry says of the image."""
        faults = self._fleet.begin("", "describe", pin.reference)
        await asyncio.sleep(0.05)
        if faults:
            return SourceUnknown(pin.digest, faults[0].message)
        return self._fleet.registry.describe(pin)
