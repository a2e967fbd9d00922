"""The one table from what happened to an exit code."""

from reconciler.core.exits import Exit
from reconciler.core.machine import BAD, GOOD, TURNING_PHASES, Machine, Status
from reconciler.core.plan import Op, Phase, Plan, Step
from reconciler.core.unknown import unreachable

__all__ = ["Exit", "apply_exit", "plan_exit"]

AFTER_CUT = frozenset({Phase.CUT, Phase.BOOT, Phase.VERIFY, Phase.CONFIRM})
"""Steps of these change what is served. What retires does not run: an old try goes before anything is cut."""


def plan_exit(plan: Plan, *, changes_count: bool) -> Exit:
    """The exit code of showing a plan. With `changes_count`, something to do is `CHANGES`."""
    if plan.refusals or plan.forbidden:
        return Exit.REFUSED
    if unreachable(plan.unknown):
        return Exit.UNREACHABLE
    if changes_count and not plan.is_settled:
        return Exit.CHANGES
    return Exit.OK


def apply_exit(machine: Machine) -> Exit:
    """The exit code of an apply that ran to its end or was interrupted."""
    if machine.is_interrupted:
        return Exit.INTERRUPTED
    bad = [step for step in machine.with_status(*BAD) if step.phase is not Phase.ROLLBACK]
    if not bad:
        return Exit.UNREACHABLE if unreachable(machine.plan.unknown) else Exit.OK
    if not all(is_as_before(machine, step) for step in bad):
        return Exit.NEEDS_A_PERSON
    if all(machine.status[step.id] is Status.STALE and not machine.way_back(step.gang) for step in bad):
        return Exit.REFUSED
    return Exit.UNCHANGED


def cut_short_exit(machine: Machine) -> Exit:
    """The exit code of an apply that lost its journal: what was begun by then may be half done."""
    begun = machine.with_status(Status.RUNNING, *GOOD, *BAD)
    return Exit.NEEDS_A_PERSON if any(step.phase in AFTER_CUT for step in begun) else Exit.UNCHANGED


def is_fault_of_version(step: Step, status: Status) -> bool:
    """Whether a version failed by itself, between cut and confirm: a node that was lost is not its fault."""
    return status is Status.FAILED and step.phase in TURNING_PHASES and step.op in {Op.START, Op.READY, Op.VERIFY}


def is_as_before(machine: Machine, bad: Step) -> bool:
    """Whether the fleet serves what it served before this step ended badly: nothing was cut, or all of it is back."""
    if machine.is_back(bad.gang):
        return True
    if bad.phase is Phase.RETIRE or machine.way_back(bad.gang):
        return False
    cut = machine.with_status(Status.APPLIED, Status.FAILED, Status.UNREACHABLE)
    group = machine.group(bad.gang)
    return not any(step.phase in AFTER_CUT and step.gang in group for step in cut if step.id not in machine.untouched)
