"""One session with a simulated node: what every call goes through. Travel times, deadlines, faults, lost links.

A call travels to the node, has its effect there, and travels back. Cancelled on the way there it never happened;
cancelled on the way back it did.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Never, TypeVar

from reconciler.core.observed import Unknown, UnknownKind
from reconciler.nodes.errors import ErrorKind, NodeError, NodeUnknownError
from reconciler.testing.faults import MUTATING, Call, Fault, Operation
from reconciler.testing.node import SimNode
from reconciler.testing.world import World

if TYPE_CHECKING:
    from reconciler.testing.controllers import SimulatedController
    from reconciler.testing.fleet import SimulatedFleet

T = TypeVar("T")

CALL_S = 20.0
"""Deadline of an ordinary call, as with real nodes."""

KEEPALIVE_S = 20.0
"""A session over a silent link is given up after so long, as with real nodes."""

TICK_S = 1.0
"""What the world does by itself is seen at once, what a test does to it within this time."""

TRAVEL_S = (0.001, 0.015)


@dataclass
class Line:
    """A session. `epoch`: the node's at the time of connecting; a later one means the session is gone."""

    controller: "SimulatedController"
    node: SimNode
    world: World
    epoch: int
    dice: random.Random
    is_closed: bool = False

    @property
    def fleet(self) -> "SimulatedFleet":
        """The fleet its node is of."""
        return self.controller.fleet

    @property
    def is_lost(self) -> bool:
        """Whether the session has ended."""
        return self.is_closed or not self.node.is_on or self.node.session_epoch != self.epoch

    @property
    def is_silent(self) -> bool:
        """Whether nothing comes through."""
        return not self.node.is_linked or self.controller.is_cut

    def close(self) -> None:
        """End the session."""
        self.is_closed = True

    async def ask(
        self, operation: Operation, ref: str, effect: Callable[[], T], deadline_s: float | None = CALL_S
    ) -> T:
        """A call of the Docker engine whose effect takes no time."""

        async def at_once() -> T:
            self.world.actor = self.controller.name
            try:
                return effect()
            finally:
                self.world.actor = ""

        return await self.call(operation, ref, at_once, deadline_s)

    async def call(
        self,
        operation: Operation,
        ref: str,
        effect: Callable[[], Awaitable[T]],
        deadline_s: float | None = CALL_S,
        *,
        needs_docker: bool = True,
    ) -> T:
        """Any call: there, effect, back. Raises `NodeError`."""
        faults = self.controller.begin(self.node.name, operation, ref)
        try:
            async with asyncio.timeout(deadline_s):
                await self._there(faults, needs_docker=needs_docker)
                self._tell(operation, ref)
                result = await effect()
                await self._back(faults)
                return result
        except TimeoutError:
            text = f"{self.node.name} did not answer {operation} {ref} within {deadline_s:g} s"
            raise NodeError(ErrorKind.TIMEOUT, text) from None

    def _tell(self, operation: Operation, ref: str) -> None:
        """The effect is about to happen."""
        is_mutating, fence = operation in MUTATING, self.node.leases.fence_of(self)
        self.fleet.on_effect(
            Call(self.world.now_s, self.node.name, operation, ref, is_mutating, self.controller.name, fence)
        )

    async def _there(self, faults: tuple[Fault, ...], *, needs_docker: bool) -> None:
        await self.travel()
        await self.reach()
        for fault in faults:
            if fault.mode == "action" and not fault.is_late:
                self.fleet.act(fault)
                await self.reach()
            if fault.mode == "delay" and not fault.is_late:
                await self.sleep(fault.delay_s)
                await self.reach()
            if fault.mode == "fail":
                raise NodeError(fault.kind, fault.message)
            if fault.mode == "hang":
                await forever()
        if needs_docker:
            self.require_docker()

    async def _back(self, faults: tuple[Fault, ...]) -> None:
        for fault in faults:
            if fault.mode == "action" and fault.is_late:
                self.fleet.act(fault)
            if fault.mode == "delay" and fault.is_late:
                await self.sleep(fault.delay_s)
        await self.travel()
        await self.reach()
        for fault in faults:
            if fault.mode == "lose-reply":
                raise NodeError(fault.kind, fault.message)

    async def travel(self) -> None:
        """A message on its way."""
        await self.sleep(self.dice.uniform(*TRAVEL_S))

    async def sleep(self, seconds: float) -> None:
        """Wait, and see what has happened meanwhile."""
        await asyncio.sleep(seconds)
        self.world.sync()

    async def reach(self) -> None:
        """Wait while the link is silent. Raises `NodeError` LOST when the session is gone."""
        since_s = self.world.now_s
        self._require_session()
        while self.is_silent:
            if self.world.now_s - since_s >= KEEPALIVE_S:
                self.close()
                raise NodeError(ErrorKind.LOST, f"{self.node.name} has been silent for {KEEPALIVE_S:g} s")
            await self.tick()
            self._require_session()

    async def until(self, is_so: Callable[[], bool]) -> None:
        """Wait for something on the node. Raises `NodeError` when the node is lost meanwhile."""
        while not is_so():
            await self.tick()
            await self.reach()

    async def tick(self) -> None:
        """Wait until something happens by itself, and not longer than a tick."""
        next_s = self.world.next_s
        wait_s = TICK_S if next_s is None else min(TICK_S, next_s - self.world.now_s)
        await self.sleep(max(wait_s, 1e-6))  # the loop takes anything shorter than its clock's resolution for now

    def require_docker(self) -> None:
        """Raises `NodeUnknownError` when the daemon is down."""
        if not self.node.has_docker:
            reason = f"Docker on {self.node.name} does not answer at /var/run/docker.sock"
            raise NodeUnknownError(Unknown(self.node.name, UnknownKind.DOCKER_DOWN, reason, "systemctl status docker"))

    def _require_session(self) -> None:
        if self.is_lost:
            raise NodeError(ErrorKind.LOST, f"the connection to {self.node.name} was lost")


async def forever() -> Never:
    """Wait for what never comes."""
    await asyncio.get_running_loop().create_future()
    raise AssertionError("the future had no result to give")
