"""Plays a scenario turn by turn, heals everything in the end, and says what was wrong on the way."""

import asyncio
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from reconciler.core.desired import Desired
from reconciler.core.exits import Exit
from reconciler.core.plan import Plan
from reconciler.nodes import protocols
from reconciler.testing.clock import DeadlockError, VirtualTimeError, run_simulated
from reconciler.testing.fleet import FIRST, ControllerKilled, SimulatedFleet
from reconciler.testing.simulation import endings
from reconciler.testing.simulation.cast import FLEET, IMAGES, desired_of
from reconciler.testing.simulation.endings import Ending
from reconciler.testing.simulation.monitor import Monitor
from reconciler.testing.simulation.placing import set_up
from reconciler.testing.simulation.scenario import Scenario, Turn
from reconciler.testing.simulation.troubles import OF_THE_CONTROLLER, Trouble, carry_out, heal

RIVAL = "rival"
HOUR_S = 3600.0
CALM_S = 120.0
"""Between the healing and the last apply: what was to mend itself has, what was leased has lapsed."""

__all__ = ["Controller", "Ending", "Failed", "play"]


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


def play(scenario: Scenario, make: Callable[[], Controller]) -> Failed | None:
    """Play it; None when all went well. The same scenario takes the same course."""
    return _Stage(scenario, make).play()


def _place(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    return " < ".join(f"{frame.name}:{frame.lineno}" for frame in reversed(frames[-4:]))


class _Stage:
    def __init__(self, scenario: Scenario, make: Callable[[], Controller]) -> None:
        self.scenario = scenario
        self.fleet = SimulatedFleet(scenario.cast.nodes, IMAGES, scenario.seed)
        self.controller, self.rival = make(), make()
        self.monitor = Monitor(self.fleet, needs_lease=self.controller.has_leases)
        self.events: list[str] = []
        self.struck = 0

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
        before = len(self.fleet.struck)
        try:
            ends = run_simulated(self._apply(turn), self.scenario.seed, HOUR_S)
        except ControllerKilled:
            self.events.append(f"{self.fleet.now_s:.2f} s: the controller is killed")
            return self._told(())
        except (DeadlockError, VirtualTimeError) as error:
            return self._told((f"it never ends: {error}",))
        finally:
            self.fleet.heal()
        struck = [fault for fault, _ in self.fleet.struck[before:]]
        is_calm = turn.rival is None and not struck
        return self._told(endings.faults(self.fleet, self.monitor, turn, ends[0], is_calm=is_calm))

    async def _apply(self, turn: Turn) -> list[Ending]:
        stop = asyncio.Event()
        self.fleet.inject(*(trouble.fault(lambda what: self._happens(what, stop)) for trouble in turn.troubles))
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
        self.monitor.begins(name, wants, FLEET)
        try:
            ending = await controller.apply(nodes, wants, lambda plan: self.monitor.planned(name, plan), stop)
        except Exception as error:  # noqa: BLE001 - whatever it is, it should not have come out of there
            ending = Ending(int(Exit.ERROR), f"{type(error).__name__}: {error}")
            self.monitor.violations.append(f"{name} broke off: {ending.summary} {_place(error)}")
        self.events.append(f"{self.fleet.now_s:.2f} s: {name} ends with {ending.exit}: {ending.summary}")
        return ending

    def _happens(self, trouble: Trouble, stop: asyncio.Event) -> None:
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
        await asyncio.sleep(CALM_S)
        self.fleet.world.sync()
        ending = await self._work(FIRST, self.fleet, self.controller, wants, asyncio.Event())
        self.monitor.begins(FIRST, wants, FLEET)
        return ending, await self.controller.plan(self.fleet, wants)

    def _told(self, why: tuple[str, ...]) -> tuple[str, ...]:
        return (*self.monitor.violations, *why)
