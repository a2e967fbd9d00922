"""One-line summaries of how an apply ended, with the next command."""

from collections import Counter
from collections.abc import Sequence

from reconciler.core.machine import BAD, Machine, Status
from reconciler.core.outcome import Exit
from reconciler.core.plan import Change, Kind, Phase

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
    gangs = ", ".join(sorted({step.gang for step in machine.with_status(*BAD) if step.phase is not Phase.ABORT}))
    if code is Exit.REFUSED:
        return f"{gangs}: changed since the plan was made; nothing was stopped; run `fleet plan` again"
    if code is Exit.UNCHANGED:
        return f"{gangs}: failed before anything was stopped; the fleet serves what it served before"
    return (
        f"{gangs}: failed after the cut; the containers of before are kept, stopped; see `fleet status`, `fleet logs`"
    )


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
