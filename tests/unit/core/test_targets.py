"""A plan narrowed to what is asked for: whole groups, and nothing of what is not asked for is in the way."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from reconciler.core.groups import groups
from reconciler.core.neighbours import intruders
from reconciler.core.observed import Observed
from reconciler.core.plan import Plan, sealed
from reconciler.core.targets import Targets, narrowed
from tests.unit.core.build import container, desired, facts, foreign, gang, observed, plan, unknown, world
from tests.unit.core.test_properties import SEEDS, many, planned
from tests.unit.core.worlds import NODES, World, after, some_order, worlds

QUAD = gang("quad", ("n1", "n2"), cluster="all")
PAIR = gang("pair", ("n1", "n2"), cluster="d")
SOLO = gang("solo", ("n3",))
TWIN = gang("solo", ("n4",), cluster="d")
REFUSED = gang("refused", ("n5",), cluster="e")
AWAY = gang("away", ("n6",), cluster="e")
FINE = gang("fine", ("n7",), cluster="e")
WANTED = desired(QUAD, SOLO, TWIN, REFUSED, AWAY, FINE)


def seen() -> Observed:
    """`pair` makes room for `quad`, one lane is refused, one is on a node that cannot be read, one is as wanted."""
    return observed(
        *world(PAIR, FINE, nodes=("n3", "n4")).nodes.values(),
        facts("n5", foreign(published_ports=(30000,))),
        unknown("n6"),
    )


MADE = plan(WANTED, seen())


def asked(*, lanes: str = "", clusters: str = "", nodes: str = "") -> Targets:
    return Targets(frozenset(lanes.split()), frozenset(clusters.split()), frozenset(nodes.split()))


def of(targets: Targets) -> Plan:
    return narrowed(MADE, WANTED, targets)


ROWS: dict[str, tuple[Targets, set[str]]] = {
    "a lane": (asked(lanes="solo"), {"c/solo", "d/solo"}),
    "a lane on a cluster": (asked(lanes="solo", clusters="d"), {"d/solo"}),
    "a lane that makes room brings what takes its place": (asked(lanes="pair"), {"all/quad", "d/pair"}),
    "a lane that needs room brings what makes it": (asked(lanes="quad"), {"all/quad", "d/pair"}),
    "a cluster": (asked(clusters="d"), {"all/quad", "d/pair", "d/solo"}),
    "a node brings every rank": (asked(nodes="n2"), {"all/quad", "d/pair"}),
    "two nodes": (asked(nodes="n3 n4"), {"c/solo", "d/solo"}),
    "two lanes": (asked(lanes="solo quad"), {"c/solo", "d/solo", "all/quad", "d/pair"}),
    "a lane on a node": (asked(lanes="solo", nodes="n3"), {"c/solo"}),
    "a lane on a node where it is not": (asked(lanes="solo", nodes="n1"), set()),
    "a lane as wanted": (asked(lanes="fine"), set()),
    "nothing in particular": (asked(), {"all/quad", "d/pair", "c/solo", "d/solo"}),
}


@pytest.mark.parametrize("what", ROWS)
def test_what_is_asked_for_comes_in_whole_groups(what: str) -> None:
    targets, expected = ROWS[what]
    made = of(targets)
    assert expected == {step.gang for step in made.steps} == {change.gang for change in made.changes}


def test_what_comes_along_is_said_with_the_reason() -> None:
    notes = {change.gang: change.notes for change in of(asked(lanes="quad")).changes}
    assert {"all/quad": (), "d/pair": ("comes along: its steps and those of all/quad need each other",)} == notes


def test_what_is_not_asked_for_refuses_and_defers_nothing() -> None:
    made = of(asked(lanes="solo quad"))
    assert ((), (), ()) == (made.refusals, made.deferred, made.unknown)


def test_what_is_asked_for_may_be_refused_deferred_or_unknown() -> None:
    assert ["e/refused"] == [item.gang for item in of(asked(lanes="refused")).refusals]
    by_cluster, by_node = of(asked(clusters="e")), of(asked(nodes="n6"))
    assert ["e/refused"] == [item.gang for item in by_cluster.refusals]
    assert (["e/away"], ["n6"]) == ([item.gang for item in by_cluster.deferred], [by_cluster.unknown[0].node])
    assert ([], ["e/away"], ["n6"]) == (
        [*by_node.refusals],
        [item.gang for item in by_node.deferred],
        [item.node for item in by_node.unknown],
    )


def test_a_refusal_about_no_lane_stays_whatever_is_asked_for() -> None:
    nothing = desired(nodes=("n1", "n2"))
    made = narrowed(plan(nothing, world(PAIR)), nothing, asked(lanes="pair"))
    assert ["empty"] == [item.code for item in made.refusals]


def test_without_targets_the_plan_is_the_plan() -> None:
    assert MADE is of(asked())


def test_it_is_a_plan_of_its_own_with_its_own_id() -> None:
    made = of(asked(lanes="solo"))
    assert made.id != MADE.id
    assert made.id == sealed(made).id
    assert made == of(asked(lanes="solo"))


def test_a_lane_that_shares_the_node_and_is_not_asked_for_is_no_intruder() -> None:
    one, two = gang("one", ("n1",), shares=True), gang("two", ("n1",), shares=True, ports=(30001,))
    there = facts("n1", container(two, proved=False))
    wanted = desired(one, two)
    made = narrowed(plan(wanted, observed(there)), wanted, asked(lanes="one"))
    assert {"c/one"} == {step.gang for step in made.steps}
    assert ("c/two",) == made.aside
    assert () == intruders(made, made.steps[0], there, "run")


def test_targets_say_what_they_are() -> None:
    assert "lane a or b and node n1" == str(asked(lanes="b a", nodes="n1"))


@many
@given(worlds(), st.sets(st.sampled_from("abcsxy"), min_size=1), SEEDS)
def test_a_narrowed_plan_runs_by_the_rules_and_leaves_what_a_whole_plan_goes_on_from(
    world: World, lanes: set[str], seed: int
) -> None:
    whole = planned(world)
    made = narrowed(whole, world.desired, Targets(lanes=frozenset(lanes)))
    assume(made.steps)
    ended = after(world, made, some_order(made, seed))  # asserts that no two lanes run on one node
    again = planned(ended)
    touched = {change.gang for change in made.changes}
    assert set() == {change.gang for change in again.changes} & touched
    rest = {group.gangs for group in groups(whole)} - {group.gangs for group in groups(made)}
    assert rest <= {group.gangs for group in groups(again)}


@many
@given(worlds(), st.sampled_from(NODES))
def test_every_step_of_the_whole_plan_on_a_node_is_in_the_plan_of_that_node(world: World, node: str) -> None:
    whole = planned(world)
    made = narrowed(whole, world.desired, Targets(nodes=frozenset({node})))
    assert {step.id for step in whole.steps if step.node == node} <= {step.id for step in made.steps}
    assert {step.id for step in made.steps} >= {needed for step in made.steps for needed in step.requires}
