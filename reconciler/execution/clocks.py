"""Which of several ranks ended first, where each end is told by the clock of another node."""

from collections.abc import Iterable, Mapping
from itertools import combinations

from reconciler.core.ends import End
from reconciler.core.host import Clock
from reconciler.nodes.times import epoch_s


def in_order(ends: Iterable[End], clocks: Mapping[str, Clock]) -> tuple[End, ...]:
    """The ends, the first one first. `clocks`: of each node where it is known.

    The nodes' own times stand unless all clocks are known and two of them surely differ: what a clock is measured to
    within is more than lies between the deaths of a gang on nodes that keep time.
    """
    told = tuple(ends)
    nodes = {end.node for end in told}
    known = [clocks[node] for node in nodes if node in clocks]
    if len(known) < len(nodes) or not any(_differ(*pair) for pair in combinations(known, 2)):
        return told
    return tuple(sorted(told, key=lambda end: epoch_s(end.container.finished_at) - clocks[end.node].offset_s))


def _differ(one: Clock, other: Clock) -> bool:
    return abs(one.offset_s - other.offset_s) > one.error_s + other.error_s
