"""What an agent sees, in few words: two lanes `a` and `b` of a fleet of four nodes, and commits that want them."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from reconciler.core.desired import Gang
from reconciler.core.gitops.decide import decide
from reconciler.core.gitops.decision import Commit, Decision, Look, Seen
from reconciler.core.gitops.looks import Planned, learned, looked
from reconciler.core.gitops.memory import Proven, Remembered
from reconciler.core.observed import NodeFacts, Observed, Unknown
from reconciler.core.withhold import Failed, Held, withhold
from tests.unit.core.build import desired, facts, gang, plan, world

NODES = ("n1", "n2", "n3", "n4")
A = gang("a", ("n1", "n2"))
B = gang("b", ("n3",))
NEW_A = gang("a", ("n1", "n2"), "serve", "--faster")
OLD, HEAD = "0" * 40, "1" * 40
NOW_S = 1_000_000.0
EMPTY = world(nodes=NODES)
BOTH = world(A, B, nodes=NODES)


def but(seen: Observed, *states: NodeFacts | Unknown) -> Observed:
    """The fleet with these nodes as they are said to be."""
    return replace(seen, nodes={**seen.nodes, **{state.node: state for state in states}})


def without(seen: Observed, *nodes: str) -> Observed:
    """The fleet with nothing on these nodes any more."""
    return but(seen, *(facts(node) for node in nodes))


def look(
    wanted: Iterable[Gang], seen: Observed, holds: Iterable[Held] = (), failed: Iterable[Failed] = (), **options: Any
) -> Planned:
    """A commit that wants these gangs, held against the fleet."""
    declared = desired(*wanted, nodes=NODES)
    return looked(declared, seen, withhold(plan(declared, seen, **options), holds, failed))


def proved(commit: str, *gangs: Gang, **others: Any) -> Remembered:
    """A commit that was applied whole: these gangs are in place."""
    proven = tuple(sorted((Proven(one.address, one.fingerprint, commit) for one in gangs), key=lambda item: item.gang))
    return Remembered(applied=commit, good=commit, proven=proven, **others)


def scene(planned: Planned | None = None, head: str = HEAD, **others: Any) -> Seen:
    """A commit that comes after the last one; what is not said is as good as can be."""
    plans = {head: planned} if planned is not None else {}
    return replace(Seen(NOW_S, Commit(head, descends=True), plans=plans), **others)


def settled(seen: Seen, looks: dict[str, Planned | None]) -> Decision:
    """The decision after everything was looked at that it asks for."""
    for _ in range(9):
        made = decide(seen)
        if not isinstance(made, Look):
            return made
        planned = looks[made.commit]
        remembered = seen.remembered if planned is None else learned(seen.remembered, made.commit, planned)
        seen = replace(seen, plans={**seen.plans, made.commit: planned}, remembered=remembered)
    raise AssertionError("it looks for ever")
