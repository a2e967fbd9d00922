"""What is done to containers that are to go: stopped before others boot, removed when nothing goes back to them."""

from dataclasses import replace

from reconciler.core.identity import is_proved
from reconciler.core.observed import RUNNING_STATES, Placed
from reconciler.core.plan import Op, Phase, Step
from reconciler.core.steps import STOPPED_STATES
from reconciler.core.units import Unit


def stop_steps(unit: Unit, reason: str, after: tuple[Step, ...]) -> tuple[Step, ...]:
    """Stop every running container of the unit, once everything in `after` is done."""
    return tuple(
        replace(
            _unit_step(unit, Phase.CUT, Op.STOP, item, reason),
            states=tuple(sorted(RUNNING_STATES)),
            grace_s=item.container.owner.stop_grace_s if item.container.owner else None,
            requires=tuple(step.id for step in after),
        )
        for item in unit.running
    )


def removals(unit: Unit, reason: str, staged: tuple[Step, ...], after: tuple[Step, ...]) -> tuple[Step, ...]:
    """Remove every container of the unit, once everything in `after` is done.

    Tries that failed before go as soon as the next one is staged, all but the newest, whose logs may still be of use:
    nothing goes back to them, and until one succeeds each apply would leave one more.
    """
    old = _outdated(unit)
    rest = tuple(item for item in unit.removable if item not in old)
    tries = _removed(replace(unit, removable=old), "a try that failed, before the last one", staged)
    return tries + _removed(replace(unit, removable=rest), reason, after)


def _outdated(unit: Unit) -> tuple[Placed, ...]:
    """What was never proved and does not run, but for the newest."""
    tries = [
        (item.container.owner.revision, item)
        for item in unit.removable
        if item.container.owner and not item.container.is_running and not is_proved(item.container.name)
    ]
    newest = max((revision for revision, _ in tries), default=0)
    return tuple(item for revision, item in tries if revision < newest)


def _removed(unit: Unit, reason: str, after: tuple[Step, ...]) -> tuple[Step, ...]:
    return tuple(
        replace(
            _unit_step(unit, Phase.RETIRE, Op.REMOVE, item, reason),
            states=STOPPED_STATES,
            requires=tuple(step.id for step in after),
        )
        for item in unit.removable
    )


def _unit_step(unit: Unit, phase: Phase, op: Op, item: Placed, reason: str) -> Step:
    name = item.container.name
    owner = item.container.owner
    step_id = f"{unit.address}/{phase}/{item.node}/{op}/{name}"
    rank = owner.rank if owner else None
    return Step(step_id, unit.address, phase, op, item.node, name, reason, rank=rank, container_id=item.container.id)
