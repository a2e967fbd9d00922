"""Plays a scenario turn by turn, heals everything in the end, and says what was wrong on the way."""

import asyncio
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from reconciler.core.desired import Desired
from reconciler.core.exits import Exit
from reconciler.core.plan import Plan
from reconciler.nodes import protocols
from reconciler.testing.clock import DeadlockError, VirtualTimeError, run_simulated
from reconciler.testing.faults import Call
from reconciler.testing.fleet import FIRST, ControllerKilled, SimulatedFleet
from reconciler.testing.simulation import endings
from reconciler.testing.simulation.cast import FLEET, IMAGES, desired_of
from reconciler.testing.simulation.endings import Ending
from reconciler.testing.simulation.monitor import Monitor
from reconciler.testing.simulation.placing import set_up
from reconciler.testing.simulation.scenario import Scenario, Turn
from reconciler.testing.simulation.troubles import OF_A_CALL, OF_THE_CONTROLLER, Trouble, calm, carry_out, heal

RIVAL = "rival"
HOUR_S = 3600.0
CALM_S = 120.0
"""Between the healing and the last apply: what was to mend itself has, what was leased has lapsed."""

__all__ = ["Controller", "Ending", "Failed", "Played", "play", "watched"]


class Controller(Protocol):
    """What is put to the test. One lives through a scenario; `forget` takes away all it has recorded.

    `has_leases`: whether it changes nodes under leases of theirs.
    """

    has_leases: bool

    async def apply(
        self, nodes: protocols.Fleet, wants: Desired, on_plan: Callable[[Plan], None], stop: asyncio.Event
    ) -> Ending:
        """Observe, plan, tell the plan, carry it out; end early and tidily when `stop` is set."""
        ...

    async def plan(self, nodes: protocols.Fleet, wants: Desired) -> Plan:
        """Observe and plan, nothing else."""
        ...

    def is_announced(self, node: str) -> bool:
        """Whether its journal has an open intent for this node."""
        ...

    def forgive(self) -> None:
        """A person says to try again what is not tried again by itself."""
        ...

    def forget(self) -> None:
        """Its record is gone."""
        ...


@dataclass(frozen=True)
class Failed:
    """A scenario in which something happened that never may: what, and what came about until then, in words."""

    scenario: Scenario
    why: tuple[str, ...]
    events: tuple[str, ...]


@dataclass(frozen=True)
class Played:
    """How a scenario went: the exit code of each apply, the troubles that came true, and what failed, if it did."""

    exits: tuple[int, ...]
    struck: tuple[str, ...]
    events: tuple[str, ...]
    failed: Failed | None


def play(scenario: Scenario, make: Callable[[], Controller]) -> Failed | None:
    """Play it; None when all went well. The same scenario takes the same course."""
    return watched(scenario, make).failed


def watched(scenario: Scenario, make: Callable[[], Controller]) -> Played:
    """Play it, and say what came about, also when all went well."""
    stage = _Stage(scenario, make)
    failed = stage.play()
    return Played(tuple(stage.exits), tuple(trouble.kind for trouble in stage.struck), tuple(stage.events), failed)


def _place(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    return " < ".join(f"{frame.name}:{frame.lineno}" for frame in reversed(frames[-4:]))


def _told_of_call(trouble: Trouble, call: Call) -> str:
    return f"{call.at_s:.2f} s: {trouble.told}: {call.operation} {call.ref[:60]} on {call.node} by {call.by}"


class _Stage:
    def __init__(self, scenario: Scenario, make: Callable[[], Controller]) -> None:
        self.scenario = scenario
        self.fleet = SimulatedFleet(scenario.cast.nodes, IMAGES, scenario.seed)
        self.controller, self.rival = make(), make()
        self.monitor = Monitor(self.fleet, needs_lease=self.controller.has_leases)
        self.events: list[str] = []
        self.exits: list[int] = []
        self.struck: list[Trouble] = []

    def play(self) -> Failed | None:
        run_simulated(set_up(self.fleet, self.scenario), self.scenario.seed)
        for turn in self.scenario.turns:
            why = self._turn(turn)
            if why:
                return Failed(self.scenario, why, tuple(self.events))
        why = self._end()
        return Failed(self.scenario, why, tuple(self.events)) if why else None

    def _turn(self, turn: Turn) -> tuple[str, ...]:
        if turn.forgets:
            self.controller.forget()
        stop = asyncio.Event()
        before = len(self.fleet.struck)
        faults = [(trouble.fault(partial(self._happens, stop)), trouble) for trouble in turn.troubles]
        self.fleet.inject(*(fault for fault, _ in faults))
        try:
            ends = run_simulated(self._apply(turn, stop), self.scenario.seed, HOUR_S)
        except ControllerKilled:
            self.events.append(f"{self.fleet.now_s:.2f} s: the controller is killed")
            return self._told(())
        except (DeadlockError, VirtualTimeError) as error:
            return self._told((f"it never ends: {error}",))
        finally:
            self.fleet.heal()
            struck = [
                (trouble, call) for hit, call in self.fleet.struck[before:] for fault, trouble in faults if hit is fault
            ]
            self.struck += [trouble for trouble, _ in struck]
            self.events += [_told_of_call(trouble, call) for trouble, call in struck if trouble.kind in OF_A_CALL]
        is_calm = not self.struck and all(one.rival is None for one in self.scenario.turns)
        why = endings.faults(self.fleet, self.monitor, turn, ends[0], is_calm=is_calm)
        is_alone = all(one.rival is None for one in self.scenario.turns)
        if is_alone and [(one.kind, one.changes_only) for one in self.struck] == [("lose the reply", True)]:
            why += endings.reply_faults(turn, ends[0]) if struck else ()
        return self._told(why)

    async def _apply(self, turn: Turn, stop: asyncio.Event) -> list[Ending]:
        works = [self._work(FIRST, self.fleet, self.controller, desired_of(self.scenario.cast, turn.wants), stop)]
        if turn.rival is not None:
            works.append(self._rival(turn))
        return await asyncio.gather(*works)

    async def _rival(self, turn: Turn) -> Ending:
        wants = desired_of(self.scenario.cast, turn.rival or ())
        await asyncio.sleep(turn.rival_after_s)
        return await self._work(RIVAL, self.fleet.second(RIVAL), self.rival, wants, asyncio.Event())

    async def _work(
        self, name: str, nodes: protocols.Fleet, controller: Controller, wants: Desired, stop: asyncio.Event
    ) -> Ending:
        self.monitor.begins(name, wants, FLEET, controller.is_announced)
        try:
            ending = await controller.apply(nodes, wants, lambda plan: self.monitor.planned(name, plan), stop)
        except Exception as error:  # noqa: BLE001 - whatever it is, it should not have come out of there
            ending = Ending(int(Exit.ERROR), f"{type(error).__name__}: {error}")
            self.monitor.violations.append(f"{name} broke off: {ending.summary} {_place(error)}")
        self.exits.append(ending.exit)
        self.events.append(f"{self.fleet.now_s:.2f} s: {name} ends with {ending.exit}: {ending.summary}")
        return ending

    def _happens(self, stop: asyncio.Event, trouble: Trouble) -> None:
        self.events.append(f"{self.fleet.now_s:.2f} s: {trouble.told}")
        if trouble.node:
            self.monitor.disturbed(trouble.node)
        if trouble.kind in OF_THE_CONTROLLER | {"registry down"}:
            for node in self.fleet.nodes:
                self.monitor.disturbed(node.name)
        carry_out(trouble, self.fleet, stop)

    def _end(self) -> tuple[str, ...]:
        """Everything is healed: one apply has to bring what is wanted, and then there is nothing to do."""
        heal(self.fleet)
        self.controller.forgive()
        wants = desired_of(self.scenario.cast, self.scenario.wish)
        try:
            ending, plan = run_simulated(self._conclude(wants), self.scenario.seed, HOUR_S)
        except (DeadlockError, VirtualTimeError) as error:
            return self._told((f"the last apply never ends: {error}",))
        return self._told(endings.final_faults(self.fleet, self.monitor, wants, ending, plan))

    async def _conclude(self, wants: Desired) -> tuple[Ending, Plan]:
        await calm(self.fleet, CALM_S)
        ending = await self._work(FIRST, self.fleet, self.controller, wants, asyncio.Event())
        self.monitor.begins(FIRST, wants, FLEET)
        return ending, await self.controller.plan(self.fleet, wants)

    def _told(self, why: tuple[str, ...]) -> tuple[str, ...]:
        return (*self.monitor.violations, *why)
