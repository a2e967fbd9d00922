"""A whole fleet in one process: nodes, image source, engines and faults, the same from the same seed."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Never

from reconciler.testing.clock import LoopClock
from reconciler.testing.controllers import SimulatedController, SimulatedNode
from reconciler.testing.faults import Call, Fault, Faults
from reconciler.testing.history import Happening, Overlap, overlaps
from reconciler.testing.images import SimImage
from reconciler.testing.network import Network
from reconciler.testing.node import SimNode, SimNodeConfig
from reconciler.testing.registry import SimRegistry
from reconciler.testing.traffic import Traffic
from reconciler.testing.world import World

FIRST = "controller"
"""The name of the controller that a fleet is by itself."""


class ControllerKilled(SystemExit):
    """The controller was killed, as by SIGKILL: no call of its loop has any effect from now on."""


class SimulatedFleet:
    """See `protocols.Fleet`. Lives on when the loop ends (a controller died) and goes on in the next one.

    `images` are what the registry has; a node has those its configuration names. `calls` is every call through a door,
    in order. Node handles (`node(name)`) are for what happens to a machine without us. It is itself the way of one
    controller to the nodes; `second(name)` is that of another. `on_effect` is told of each call at the moment when it
    takes effect on its node.
    """

    def __init__(self, nodes: Sequence[SimNodeConfig], images: Sequence[SimImage] = (), seed: int = 0) -> None:
        self.calls: list[Call] = []
        self.on_effect: Callable[[Call], None] = lambda call: None
        self.world = World(LoopClock())
        self.seed = seed
        self._images = {image.digest: image for image in images}
        self._nodes = {config.name: SimNode(config, self.world, self._images, seed) for config in nodes}
        self._faults = Faults()
        self.network = Network(self._nodes)
        self.registry = SimRegistry(self._images)
        self.traffic = Traffic()
        self._controllers = {FIRST: SimulatedController(self, FIRST, seed)}
        self.sources = self._controllers[FIRST].sources
        self.hooks = self._controllers[FIRST].hooks
        for node in self._nodes.values():
            node.runtime.accepts = self._from(node)

    def _from(self, node: SimNode) -> Callable[[str, int], bool]:
        return lambda address, port: self.network.accepts(node, address, port)

    # protocols.Fleet

    async def connect(self, node: str, deadline_s: float) -> SimulatedNode:
        """An open session. Raises `NodeUnknownError`."""
        return await self._controllers[FIRST].connect(node, deadline_s)

    async def close(self) -> None:
        """End all sessions of the first controller."""
        await self._controllers[FIRST].close()

    @property
    def sent_bytes(self) -> int:
        """Bytes of images that left the controller; `traffic` has those of every other link."""
        return self.traffic.from_controller

    # what tests do

    @property
    def now_s(self) -> float:
        """Virtual seconds since the first call."""
        self.world.sync()
        return self.world.now_s

    @property
    def nodes(self) -> tuple[SimNode, ...]:
        """All nodes, as given."""
        return tuple(self._nodes.values())

    def node(self, name: str) -> SimNode:
        """The machine itself."""
        return self._nodes[name]

    @property
    def first(self) -> SimulatedController:
        """The way of the controller that this fleet is by itself."""
        return self._controllers[FIRST]

    def second(self, name: str) -> SimulatedController:
        """The way of another controller, with sessions of its own. The same name is the same controller."""
        if name not in self._controllers:
            self._controllers[name] = SimulatedController(self, name, self.seed + len(self._controllers))
        return self._controllers[name]

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
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda loop, context: None)  # the dead say nothing about tasks they leave behind
        for controller in self._controllers.values():
            controller.die(loop)
        raise ControllerKilled

    def after(self, delay_s: float, action: Callable[["SimulatedFleet"], None]) -> None:
        """Let `action` happen `delay_s` virtual seconds from now."""
        self.world.sync()
        self.world.after(delay_s, lambda: action(self))

    def add_foreign(self, node: str, container: str, ports: tuple[int, ...] = (), gpus: int = 0) -> str:
        """A running container that is not ours; its id."""
        return self._nodes[node].add_foreign(container, ports, gpus)

    @property
    def mutations(self) -> tuple[Call, ...]:
        """The calls that change something, whether they succeeded or not."""
        return tuple(call for call in self.calls if call.mutating)

    @property
    def struck(self) -> tuple[tuple[Fault, Call], ...]:
        """The faults that came true, each with the call it struck."""
        return tuple(self._faults.struck)

    def history(self, node: str | None = None) -> tuple[Happening, ...]:
        """What happened on a node, or on all of them, up to now."""
        self.world.sync()
        return tuple(item for item in self.world.history if node in {None, item.node})

    def overlaps(self) -> tuple[Overlap, ...]:
        """Containers that ran together on a node and should not have: see `history.overlaps`."""
        return overlaps(self.history())

    # what controllers and doors do

    def named(self, node: str) -> SimNode | None:
        """The node of this name."""
        return self._nodes.get(node)

    def log(self, call: Call) -> tuple[Fault, ...]:
        """Write down a call; the faults that strike at it."""
        self.calls.append(call)
        return self._faults.of(call)

    def act(self, fault: Fault) -> None:
        """Run a fault's action. It is nobody's call."""
        actor, self.world.actor = self.world.actor, ""
        try:
            if fault.action is not None:
                fault.action(self)
        finally:
            self.world.actor = actor
