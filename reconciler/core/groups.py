"""Which gangs of a plan hang together: they are cut, confirmed, rolled back, held and targeted as one.

Two lanes that take the places of a third wait for each other, and so do the steps of one gang. Gangs of different
groups have nothing to do with each other.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from reconciler.core.plan import Plan, Step


@dataclass(frozen=True)
class Group:
    """Addresses of gangs, those that only stop included, and the nodes on which their steps are."""

    gangs: frozenset[str]
    nodes: frozenset[str]


def groups(plan: Plan) -> tuple[Group, ...]:
    """The groups of a plan, by their first address. Every gang with a step is in exactly one."""
    found = connected(plan.steps)
    nodes: dict[str, set[str]] = {}
    for step in plan.steps:
        if step.node is not None:
            nodes.setdefault(step.gang, set()).add(step.node)
    return tuple(Group(gangs, frozenset().union(*(nodes.get(gang, ()) for gang in gangs))) for gangs in found)


def connected(steps: Iterable[Step]) -> tuple[frozenset[str], ...]:
    """Sets of gangs of which a step of one requires a step of another, directly or by others; sorted."""
    steps = tuple(steps)
    gang_of = {step.id: step.gang for step in steps}
    together = {step.gang: {step.gang} for step in steps}
    for step in steps:
        for needed in step.requires:
            _join(together, step.gang, gang_of[needed])
    found = {frozenset(gangs) for gangs in together.values()}
    return tuple(sorted(found, key=min))


def _join(together: dict[str, set[str]], one: str, other: str) -> None:
    if together[one] is together[other]:
        return
    joined = together[one] | together[other]
    together.update(dict.fromkeys(joined, joined))
