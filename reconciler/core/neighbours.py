"""Who else of this fleet runs where a gang boots. Looked at right before a start and again before a gang is proved.

Two controllers that know nothing of each other can both find a node free. The first look stops the later of them; the
second look stops both when they started at one moment: better no lane than two on one GPU.
"""

from reconciler.core.identity import made_by
from reconciler.core.observed import Container, NodeFacts
from reconciler.core.plan import Op, Phase, Plan, Step


def intruders(plan: Plan, step: Step, facts: NodeFacts, run_id: str) -> tuple[Container, ...]:
    """Running containers of this fleet on the node that neither the plan nor this run accounts for at a step, by name.

    Accounted for is what stays beside it, what steps on its way start or confirm, and what the run made. What they stop
    has been stopped by then; another generation of the same gang that somebody started meanwhile is an intruder.
    """
    beside = {*plan.unchanged, *plan.aside, *(item.gang for item in plan.deferred)}
    is_back = step.phase is Phase.ROLLBACK  # what this run made has been stopped by then, too
    back = tuple(item for way in plan.rollbacks for item in way.steps)
    way = back if is_back else plan.steps
    known = {item.container_id for item in way if item.op in {Op.START, Op.CONFIRM}}
    running = (item for item in facts.containers if item.is_running and item.owner and item.owner.fleet == plan.fleet)
    maker = None if is_back else run_id
    found = (item for item in running if item.id not in known and not _is_ours(item, beside, maker))
    return tuple(sorted(found, key=lambda item: item.name))


def _is_ours(container: Container, beside: set[str], run_id: str | None) -> bool:
    owner = container.owner
    is_made = owner is not None and run_id is not None and made_by(run_id, owner)
    return owner is not None and (owner.gang in beside or is_made)


def told(node: str, found: tuple[Container, ...]) -> str:
    """What is in the way, and what may be the reason."""
    names = ", ".join(item.name for item in found)
    return f"{names} of this fleet runs on {node}, and not by this plan: is another apply at work?"
