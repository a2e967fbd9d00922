"""The apply state machine: what ended comes in, which steps to run now comes out. It decides nothing about the fleet.

Status of a step (the table `MOVES` is the whole of it)::

    pending -> running -> applied | noop | stale | failed | unreachable
    pending -> skipped
    applied -> rolled_back

A step runs when everything it requires is applied or noop. When a step ends badly, whatever requires it is skipped;
other gangs go on. When a group (`Rollback.gangs`) fails between cut and confirm, nothing of it begins any more, what
only waits is called off (`overtaken`), and as soon as nothing of it is under way (a stop that overtakes a start would
find nothing to stop) the steps of its rollback run. When all of these are done, the group is as it was before.
"""

from collections.abc import Iterable
from enum import StrEnum

from reconciler.core.plan import Op, Phase, Plan, Rollback, Step


class Status(StrEnum):
    """Where a step is. Values are stable: they are in the journal and in JSON outputs."""

    PENDING = "pending"
    RUNNING = "running"
    APPLIED = "applied"
    NOOP = "noop"
    STALE = "stale"
    FAILED = "failed"
    UNREACHABLE = "unreachable"
    SKIPPED = "skipped"
    ROLLED_BACK = "rolled_back"


GOOD = frozenset({Status.APPLIED, Status.NOOP})
BAD = frozenset({Status.STALE, Status.FAILED, Status.UNREACHABLE})

MOVES: dict[Status, frozenset[Status]] = {
    Status.PENDING: frozenset({Status.RUNNING, Status.SKIPPED}),
    Status.RUNNING: GOOD | BAD | {Status.SKIPPED},
    Status.APPLIED: frozenset({Status.ROLLED_BACK}),
}

ENDED = frozenset(Status) - {Status.PENDING, Status.RUNNING}

TURNING_PHASES = frozenset({Phase.CUT, Phase.BOOT, Phase.VERIFY, Phase.CONFIRM})
"""From cut to confirm: phases in which a bad end turns the whole group back."""

WAITS = frozenset({Op.ROOM, Op.READY, Op.VERIFY})
"""Steps that only wait: they can be called off at any moment, and leave nothing."""


class IllegalMove(RuntimeError):  # noqa: N818 - a fault of ours, named after what happened
    """A step was moved in a way the table does not have: a fault in the caller."""


class Machine:
    """One apply of one plan. Feed it every end of a step; run what it returns."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        ways_back = [step for way in plan.rollbacks for step in way.steps]
        self._steps = {step.id: step for step in (*plan.steps, *ways_back)}
        self.status: dict[str, Status] = dict.fromkeys((step.id for step in plan.steps), Status.PENDING)
        self._group_of = {gang: way for way in plan.rollbacks for gang in way.gangs}
        self._turning: dict[tuple[str, ...], Rollback] = {}
        self._dependants: dict[str, list[str]] = {}
        for step in self._steps.values():
            for needed in step.requires:
                self._dependants.setdefault(needed, []).append(step.id)
        self.is_interrupted = False
        self.untouched: set[str] = set()

    def begin(self) -> tuple[Step, ...]:
        """The steps that can run at once."""
        return self._ready(self.status)

    def ended(self, step_id: str, status: Status, *, untouched: bool = False) -> tuple[Step, ...]:
        """Take the end of a step; the steps that can run now. `untouched`: it failed before it did anything."""
        if untouched:
            self.untouched.add(step_id)
        self._move(step_id, status)
        step = self._steps[step_id]
        if status in BAD:
            self._after_bad(step)
        elif status is Status.SKIPPED:
            self._skip_dependants(step_id)
        ready = self._ready(self._dependants.get(step_id, ())) if status in GOOD else ()
        return ready + self._turned(step)

    @property
    def overtaken(self) -> tuple[Step, ...]:
        """Waits under way of groups that turn back: to be called off, and told as skipped."""
        turning = [gang for way in self._turning.values() for gang in way.gangs]
        return tuple(
            step
            for step in self.waiting_for
            if step.op in WAITS and step.gang in turning and step.phase is not Phase.ROLLBACK
        )

    def group(self, gang: str) -> tuple[str, ...]:
        """The gangs that succeed or fail together with this one, itself included."""
        way = self._group_of.get(gang)
        return (gang,) if way is None else way.gangs

    def way_back(self, gang: str) -> tuple[Step, ...]:
        """The steps of the rollback that this gang was part of; empty when none has begun."""
        way = self._group_of.get(gang)
        return tuple(step for step in way.steps if step.id in self.status) if way is not None else ()

    def is_back(self, gang: str) -> bool:
        """Whether the gang failed, and all of its group is as it was before."""
        steps = self.way_back(gang)
        return bool(steps) and all(self.status[step.id] in GOOD for step in steps)

    def interrupt(self) -> None:
        """No new steps from now on; those that wait are skipped."""
        self.is_interrupted = True
        for step_id, status in self.status.items():
            if status is Status.PENDING:
                self._move(step_id, Status.SKIPPED)

    @property
    def is_done(self) -> bool:
        """Whether every step has ended."""
        return all(status in ENDED for status in self.status.values())

    @property
    def waiting_for(self) -> tuple[Step, ...]:
        """The steps that run now."""
        return tuple(self._steps[key] for key, status in self.status.items() if status is Status.RUNNING)

    def with_status(self, *wanted: Status) -> tuple[Step, ...]:
        """All steps in one of these statuses, in the plan's order."""
        return tuple(self._steps[key] for key, status in self.status.items() if status in wanted)

    def _ready(self, among: Iterable[str]) -> tuple[Step, ...]:
        if self.is_interrupted:
            return ()
        ready = [key for key in among if self.status[key] is Status.PENDING and self._is_free(self._steps[key])]
        for key in ready:
            self._move(key, Status.RUNNING)
        return tuple(self._steps[key] for key in ready)

    def _is_free(self, step: Step) -> bool:
        return all(self.status[needed] in GOOD for needed in step.requires)

    def _after_bad(self, step: Step) -> None:
        self._skip_dependants(step.id)
        way = self._group_of.get(step.gang)
        if way is None or step.phase not in TURNING_PHASES:
            return
        self._turning.setdefault(way.gangs, way)
        for other in self.plan.steps:
            if other.gang in way.gangs and self.status[other.id] is Status.PENDING:
                self._move(other.id, Status.SKIPPED)

    def _turned(self, step: Step) -> tuple[Step, ...]:
        """What a group that turns back does next: begin its rollback, once nothing of it is under way; or be back."""
        way = self._group_of.get(step.gang)
        if way is None or way.gangs not in self._turning or any(item.gang in way.gangs for item in self.waiting_for):
            return ()
        if self.way_back(step.gang):
            self._mark_back(way)
            return ()
        if self.is_interrupted or not self._has_effect(way):
            return ()
        self.status.update(dict.fromkeys((item.id for item in way.steps), Status.PENDING))
        return self._ready([item.id for item in way.steps])

    def _has_effect(self, way: Rollback) -> bool:
        """Whether anything was changed from the cut on, or may have been."""
        changed = {Status.APPLIED, Status.FAILED, Status.UNREACHABLE}
        return any(
            step.gang in way.gangs and step.phase in TURNING_PHASES and self.status[step.id] in changed
            for step in self.plan.steps
            if step.id not in self.untouched
        )

    def _mark_back(self, way: Rollback) -> None:
        if not self.is_back(way.gangs[0]):
            return
        for step in self.plan.steps:
            if step.gang in way.gangs and step.phase in TURNING_PHASES and self.status[step.id] is Status.APPLIED:
                self._move(step.id, Status.ROLLED_BACK)
                self._skip_dependants(step.id)  # a lane beside it that still waits for its place does not get it

    def _skip_dependants(self, step_id: str) -> None:
        for key in self._dependants.get(step_id, ()):
            if self.status[key] is Status.PENDING:
                self._move(key, Status.SKIPPED)
                self._skip_dependants(key)

    def _move(self, step_id: str, status: Status) -> None:
        now = self.status[step_id]
        if status not in MOVES.get(now, frozenset()):
            raise IllegalMove(f"step {step_id} of plan {self.plan.id}: {now} -> {status}")
        self.status[step_id] = status
