"""Who else of this fleet runs where a gang boots. Looked at right before a start and again before a gang is proved.

Two controllers that know nothing of each other can both find a node free. The first look stops the later of them; the
second look stops both when they started at one moment: better no lane than two on one GPU.
"""

from reconciler.core.observed import Container, NodeFacts
from reconciler.core.plan import Plan


def intruders(plan: Plan, facts: NodeFacts) -> tuple[Container, ...]:
    """Running containers of this fleet on the node that the plan does not account for, by name."""
    known = {*plan.unchanged, *(gang.address for gang in plan.gangs), *(item.gang for item in plan.deferred)}
    known |= {*plan.aside}
    known |= {gang.address for way in plan.rollbacks for gang in way.returns}
    found = (item for item in facts.containers if item.is_running and item.owner and item.owner.fleet == plan.fleet)
    return tuple(sorted((item for item in found if not _is_of(item, known)), key=lambda item: item.name))


def _is_of(container: Container, gangs: set[str]) -> bool:
    return container.owner is not None and container.owner.gang in gangs


def told(node: str, found: tuple[Container, ...]) -> str:
    """What is in the way, and what may be the reason."""
    names = ", ".join(item.name for item in found)
    return f"{names} of this fleet runs on {node}, and not by this plan: is another apply at work?"
