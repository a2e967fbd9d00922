"""The part of a plan that a person asks for, by whole groups: nothing is left as the whole plan would not accept it."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from reconciler.core.desired import Desired
from reconciler.core.groups import Group, groups
from reconciler.core.plan import Change, Plan, only_gangs, sealed


@dataclass(frozen=True)
class Targets:
    """What is asked for. Names of one kind add up, kinds restrict each other; empty means all."""

    lanes: frozenset[str] = frozenset()
    clusters: frozenset[str] = frozenset()
    nodes: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.lanes or self.clusters or self.nodes)

    def __str__(self) -> str:
        kinds = (("lane", self.lanes), ("cluster", self.clusters), ("node", self.nodes))
        return " and ".join(f"{kind} {' or '.join(sorted(names))}" for kind, names in kinds if names)

    def hit(self, gang: str, nodes: Iterable[str]) -> bool:
        """Whether a gang on these nodes is asked for."""
        cluster, _, lane = gang.partition("/")
        return (
            (not self.lanes or lane in self.lanes)
            and (not self.clusters or cluster in self.clusters)
            and (not self.nodes or not self.nodes.isdisjoint(nodes))
        )


def narrowed(plan: Plan, desired: Desired, targets: Targets) -> Plan:
    """The plan reduced to the groups in which something is asked for, each whole.

    What comes along is told in the notes of its change. Refusals, deferrals and unknown nodes count only where they
    are about what is asked for, or about nothing in particular.
    """
    if not targets:
        return plan
    places = _places(plan, desired)
    asked = {gang for gang, nodes in places.items() if targets.hit(gang, nodes)}
    wanted = [group for group in groups(plan) if group.gangs & asked]
    kept = asked | {gang for group in wanted for gang in group.gangs}
    part = only_gangs(plan, lambda gang: gang in kept or not gang)
    nodes = targets.nodes | {node for gang in kept for node in places.get(gang, ())}
    return sealed(
        replace(
            part,
            changes=tuple(_noted(change, asked, wanted) for change in part.changes),
            unknown=tuple(item for item in plan.unknown if item.node in nodes),
            unchanged=tuple(gang for gang in plan.unchanged if gang in kept),
        )
    )


def _places(plan: Plan, desired: Desired) -> dict[str, frozenset[str]]:
    """The nodes of every gang that the plan speaks of: where it is wanted, and where its steps are."""
    found = {gang.address: {*gang.nodes} for gang in desired.gangs}
    for change in plan.changes:
        found.setdefault(change.gang, set()).update(change.nodes)
    for step in plan.steps:
        found.setdefault(step.gang, set()).update({step.node} if step.node else ())
    for item in plan.refusals:
        if item.gang:
            found.setdefault(item.gang, set()).update({item.node} if item.node else ())
    for deferred in plan.deferred:
        found.setdefault(deferred.gang, set())
    return {gang: frozenset(nodes) for gang, nodes in found.items()}


def _noted(change: Change, asked: set[str], wanted: Iterable[Group]) -> Change:
    if change.gang in asked:
        return change
    of = next((group for group in wanted if change.gang in group.gangs), None)
    if of is None:
        return change
    others = ", ".join(sorted(of.gangs & asked))
    return replace(change, notes=(f"comes along: its steps and those of {others} need each other", *change.notes))
