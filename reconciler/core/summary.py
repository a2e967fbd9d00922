"""Short summaries of how an apply ended, with the next command."""

from collections import Counter
from collections.abc import Sequence

from reconciler.core.machine import BAD, Machine, Status
from reconciler.core.outcome import Exit
from reconciler.core.plan import Change, Kind, Op, Phase

_PAST = {
    Kind.BOOT: "booted",
    Kind.REPLACE: "replaced",
    Kind.REPAIR: "repaired",
    Kind.PROVE: "proved",
    Kind.STOP: "stopped",
    Kind.CLEAN: "cleaned",
}


def apply_summary(machine: Machine, code: Exit) -> str:
    """What became of the fleet, and what to do next."""
    if code is Exit.INTERRUPTED:
        left = len(machine.with_status(Status.SKIPPED))
        return f"interrupted with {left} steps not done; `fleet apply` goes on from here"
    if code in {Exit.OK, Exit.UNREACHABLE}:
        rest = f"; not reached: {', '.join(item.node for item in machine.plan.unknown)}" if machine.plan.unknown else ""
        return f"{_counts(machine.plan.changes)}{rest}"
    gangs = ", ".join(sorted(_failed(machine)))
    if code is Exit.REFUSED:
        return f"{gangs}: changed since the plan was made; nothing was stopped; run `fleet plan` again"
    if code is Exit.UNCHANGED:
        before = "failed before anything was stopped; the fleet serves what it served before"
        return f"{gangs}: {before}\n{_next(machine, ())}"
    if all(step.phase in {Phase.RETIRE, Phase.ABORT} for step in machine.with_status(*BAD)):
        return f"{gangs}: as wanted, but what is left of before could not be removed\n{_next(machine, ())}"
    stopped = _stopped_in_vain(machine)
    kept = f"stopped for it, and kept: {', '.join(stopped)}" if stopped else "nothing was stopped for it"
    return f"{gangs}: failed; {kept}\n{_next(machine, stopped)}"


def _failed(machine: Machine) -> set[str]:
    """The gangs in which something ended badly, and those that could not go on because of it."""
    bad = {step.gang for step in machine.with_status(*BAD) if step.phase is not Phase.ABORT}
    return bad | {step.gang for step in machine.with_status(Status.SKIPPED) if step.op not in {Op.STOP, Op.REMOVE}}


def _stopped_in_vain(machine: Machine) -> tuple[str, ...]:
    """The lanes that were stopped for a gang that failed: to make room for it, or to be replaced."""
    stopped = {step.id: step.gang for step in machine.with_status(Status.APPLIED) if step.op is Op.STOP}
    failed = _failed(machine)
    boots = [step for step in machine.plan.steps if step.gang in failed and step.phase is not Phase.RETIRE]
    needed = {item for step in boots for item in step.requires}
    return tuple(sorted({gang for step_id, gang in stopped.items() if step_id in needed}))


def _next(machine: Machine, stopped: Sequence[str]) -> str:
    """What a person can do now."""
    silent = sorted({step.node for step in machine.with_status(Status.UNREACHABLE) if step.node})
    if silent:
        return f"when {', '.join(silent)} can be reached again: `fleet apply` goes on from here"
    changed = any(
        item.gang in _failed(machine) and item.kind in {Kind.BOOT, Kind.REPLACE} for item in machine.plan.changes
    )
    undo = "; to have back what was stopped: undo the change in the spec, then `fleet apply`"
    back = undo if stopped and changed else ""
    return f"mend what is shown above, then `fleet apply`{back}"


def cut_short_summary(machine: Machine, why: str, hint: str) -> str:
    """For a run that had to end because it could not be recorded any more."""
    left = len(machine.with_status(Status.SKIPPED, Status.RUNNING))
    ended = f"ended with {left} steps not done, since nothing goes on unrecorded: {why}"
    return f"{ended}\n{hint} Then `fleet apply` goes on from here"


def _counts(changes: Sequence[Change]) -> str:
    counts = Counter(change.kind for change in changes)
    return ", ".join(f"{counts[kind]} {_PAST[kind]}" for kind in Kind if counts[kind]) or "nothing to do"


def unsettled_summary(changes: Sequence[Change]) -> str:
    """Which fields do not settle: the plan after the apply was not empty."""
    told = []
    for change in changes:
        fields = ", ".join(dict.fromkeys(field.field for field in change.fields))
        told.append(f"{change.gang} ({fields or change.reason})")
    return f"applied, but it will not settle: {'; '.join(told)}"
