"""The one table from what happened to an exit code."""

from collections.abc import Iterable

from reconciler.core.exits import Exit
from reconciler.core.machine import BAD, GOOD, Machine, Status
from reconciler.core.plan import Phase, Plan, Step

__all__ = ["Exit", "apply_exit", "plan_exit"]

AFTER_CUT = frozenset({Phase.CUT, Phase.BOOT, Phase.VERIFY, Phase.CONFIRM, Phase.RETIRE})


def plan_exit(plan: Plan, *, changes_count: bool) -> Exit:
    """The exit code of showing a plan. With `changes_count`, something to do is `CHANGES`."""
    if plan.refusals:
        return Exit.REFUSED
    if plan.unknown:
        return Exit.UNREACHABLE
    if changes_count and not plan.is_settled:
        return Exit.CHANGES
    return Exit.OK


def apply_exit(machine: Machine) -> Exit:
    """The exit code of an apply that ran to its end or was interrupted."""
    if machine.is_interrupted:
        return Exit.INTERRUPTED
    bad = [step for step in machine.with_status(*BAD) if step.phase is not Phase.ABORT]
    if not bad:
        return Exit.UNREACHABLE if machine.plan.unknown else Exit.OK
    if _anything_cut(machine, bad):
        return Exit.NEEDS_A_PERSON
    if all(machine.status[step.id] is Status.STALE for step in bad):
        return Exit.REFUSED
    return Exit.UNCHANGED


def cut_short_exit(machine: Machine) -> Exit:
    """The exit code of an apply that lost its journal: what was begun by then may be half done."""
    begun = machine.with_status(Status.RUNNING, *GOOD, *BAD)
    return Exit.NEEDS_A_PERSON if any(step.phase in AFTER_CUT for step in begun) else Exit.UNCHANGED


def _anything_cut(machine: Machine, bad: Iterable[Step]) -> bool:
    """Whether a gang that failed had gone beyond staging: what served before may not serve now."""
    if any(step.phase in {Phase.BOOT, Phase.VERIFY, Phase.CONFIRM, Phase.RETIRE} for step in bad):
        return True
    failed = {step.gang for step in bad}
    failed |= {step.gang for step in machine.with_status(Status.SKIPPED)}
    return any(step.phase in AFTER_CUT and step.gang in failed for step in machine.with_status(*GOOD))
