"""The apply state machine: what ended comes in, which steps to run now comes out. It decides nothing about the fleet.

Status of a step (the table `MOVES` is the whole of it)::

    pending -> running -> applied | noop | stale | failed | unreachable
    pending -> skipped

A step runs when everything it requires is applied or noop. When a step ends badly, whatever requires it is skipped;
other gangs go on. When the boot or the gate of a gang ends badly, its abort steps run as soon as no start of it is
under way (a stop that overtakes a start would find nothing to stop): no half-started gang is left.
"""

from collections.abc import Iterable
from enum import StrEnum

from reconciler.core.plan import Op, Phase, Plan, Step


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


GOOD = frozenset({Status.APPLIED, Status.NOOP})
BAD = frozenset({Status.STALE, Status.FAILED, Status.UNREACHABLE})

MOVES: dict[Status, frozenset[Status]] = {
    Status.PENDING: frozenset({Status.RUNNING, Status.SKIPPED}),
    Status.RUNNING: GOOD | BAD | {Status.SKIPPED},
}

ABORTING_PHASES = frozenset({Phase.BOOT, Phase.VERIFY})
"""Phases in which a bad end leaves ranks running that nobody has proved."""


class IllegalMove(RuntimeError):  # noqa: N818 - a fault of ours, named after what happened
    """A step was moved in a way the table does not have: a fault in the caller."""


class Machine:
    """One apply of one plan. Feed it every end of a step; run what it returns."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self._steps = {step.id: step for step in (*plan.steps, *plan.aborts)}
        self.status: dict[str, Status] = dict.fromkeys((step.id for step in plan.steps), Status.PENDING)
        self._aborts: dict[str, list[Step]] = {}
        for step in plan.aborts:
            self._aborts.setdefault(step.gang, []).append(step)
        self._dependants: dict[str, list[str]] = {}
        for step in plan.steps:
            for needed in step.requires:
                self._dependants.setdefault(needed, []).append(step.id)
        self._aborting: set[str] = set()
        self.is_interrupted = False

    def begin(self) -> tuple[Step, ...]:
        """The steps that can run at once."""
        return self._ready(self.status)

    def ended(self, step_id: str, status: Status) -> tuple[Step, ...]:
        """Take the end of a step; the steps that can run now."""
        self._move(step_id, status)
        step = self._steps[step_id]
        if status in BAD:
            self._after_bad(step)
        elif status is Status.SKIPPED:
            self._skip_dependants(step_id)
        ready = self._ready(self._dependants.get(step_id, ())) if status in GOOD else ()
        return ready + self._undo(step.gang)

    def interrupt(self) -> None:
        """No new steps from now on; those that wait are skipped."""
        self.is_interrupted = True
        for step_id, status in self.status.items():
            if status is Status.PENDING:
                self._move(step_id, Status.SKIPPED)

    @property
    def is_done(self) -> bool:
        """Whether every step has ended."""
        return not any(status in MOVES for status in self.status.values())

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
        if step.phase not in ABORTING_PHASES:
            return
        self._aborting.add(step.gang)
        for other in self.plan.steps:
            if other.gang == step.gang and other.phase in ABORTING_PHASES and self.status[other.id] is Status.PENDING:
                self._move(other.id, Status.SKIPPED)
                self._skip_dependants(other.id)

    def _undo(self, gang: str) -> tuple[Step, ...]:
        """The abort steps of a gang that failed, once, when none of its starts is under way."""
        starting = any(step.op is Op.START and step.gang == gang for step in self.waiting_for)
        if gang not in self._aborting or starting or self.is_interrupted:
            return ()
        aborts = self._aborts.pop(gang, [])
        self.status.update(dict.fromkeys((abort.id for abort in aborts), Status.RUNNING))
        return tuple(aborts)

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
