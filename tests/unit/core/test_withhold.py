"""What is withheld of a plan: whole groups, for a hold or because a version failed before."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.core.groups import groups
from reconciler.core.observed import Observed
from reconciler.core.plan import Plan, Refusal, Withheld, sealed
from reconciler.core.stale import Stale
from reconciler.core.withhold import Failed, Held, HoldKind, going, stands_in_the_way, withheld_summary, withhold
from tests.unit.core.build import desired, gang, observed, plan, world
from tests.unit.core.test_properties import many, planned
from tests.unit.core.worlds import NODES, World, worlds

QUAD = gang("quad", ("n1", "n2"), cluster="all")
PAIR = gang("pair", ("n1", "n2"), cluster="d")
SOLO = gang("solo", ("n3",))
UNPROVED = gang("young", ("n4",))


def seen() -> Observed:
    """`pair` runs where `quad` is to boot, `solo` is to boot beside them, `young` has to be proved."""
    nodes = {**world(PAIR, nodes=("n3",)).nodes, **world(UNPROVED, proved=False).nodes}
    return observed(*nodes.values())


MADE = plan(desired(QUAD, SOLO, UNPROVED), seen())
EVERY = {"all/quad", "d/pair", "c/solo", "c/young"}


def hold(kind: HoldKind, name: str, until: str = "") -> Held:
    return Held("1f00", kind, name, "ops@laptop", "a demo runs", until)


def withheld(made: Plan) -> set[str]:
    return {item.gang for item in made.withheld}


def test_the_world_of_these_tests_has_three_groups() -> None:
    assert [{"all/quad", "d/pair"}, {"c/solo"}, {"c/young"}] == [set(group.gangs) for group in groups(MADE)]


HOLDS: dict[str, tuple[Held, set[str]]] = {
    "the lane that boots": (hold("lane", "quad"), {"all/quad", "d/pair"}),
    "the lane that makes room": (hold("lane", "pair"), {"all/quad", "d/pair"}),
    "a lane alone": (hold("lane", "solo"), {"c/solo"}),
    "a lane that is only proved": (hold("lane", "young"), {"c/young"}),
    "a lane of no step": (hold("lane", "other"), set()),
    "the cluster of what boots": (hold("cluster", "all"), {"all/quad", "d/pair"}),
    "the cluster of what stops": (hold("cluster", "d"), {"all/quad", "d/pair"}),
    "a cluster of two groups": (hold("cluster", "c"), {"c/solo", "c/young"}),
    "a node of one rank": (hold("node", "n2"), {"all/quad", "d/pair"}),
    "another node": (hold("node", "n3"), {"c/solo"}),
    "a node without steps": (hold("node", "n9"), set()),
    "a lane whose name is a node's": (hold("node", "quad"), set()),
}


@pytest.mark.parametrize("what", HOLDS)
def test_a_hold_withholds_every_group_it_touches_whole(what: str) -> None:
    held, expected = HOLDS[what]
    made = withhold(MADE, [held], [])
    assert expected == withheld(made)
    assert EVERY - expected == {step.gang for step in going(made).steps}


def test_a_hold_is_told_with_who_until_when_why_and_how_it_ends() -> None:
    made = withhold(MADE, [hold("lane", "solo", "2026-12-01 08:00 UTC")], [])
    why = "lane solo is held by ops@laptop until 2026-12-01 08:00 UTC: a demo runs"
    assert (Withheld("c/solo", "hold", why, "`fleet release 1f00` ends the hold"),) == made.withheld


def test_what_comes_along_says_because_of_whom() -> None:
    made = withhold(MADE, [hold("lane", "quad")], [])
    own, along = made.withheld
    assert ("all/quad", "lane quad is held by ops@laptop: a demo runs") == (own.gang, own.why)
    assert ("d/pair", "goes with all/quad: their steps need each other") == (along.gang, along.why)


def failed(gang: str, fingerprint: str) -> Failed:
    return Failed(gang, fingerprint, "rank 1 exited 137", "8a2f01c4de77", "2026-11-30 10:00 UTC")


QUARANTINES: dict[str, tuple[Failed, set[str]]] = {
    "the version that would boot": (failed("all/quad", QUAD.fingerprint), {"all/quad", "d/pair"}),
    "another version": (failed("all/quad", PAIR.fingerprint), set()),
    "the same version elsewhere": (failed("other/quad", QUAD.fingerprint), set()),
    "a version that runs and is only proved": (failed("c/young", UNPROVED.fingerprint), set()),
}


@pytest.mark.parametrize("what", QUARANTINES)
def test_a_quarantine_withholds_the_groups_that_boot_that_version_there(what: str) -> None:
    known, expected = QUARANTINES[what]
    assert expected == withheld(withhold(MADE, [], [known]))


def test_a_quarantine_is_told_with_its_cause_and_what_to_do() -> None:
    first, _ = withhold(MADE, [], [failed("all/quad", QUAD.fingerprint)]).withheld
    assert "quarantine" == first.kind
    assert "this version was put aside at 2026-11-30 10:00 UTC (run 8a2f01c4de77): rank 1 exited 137" == first.why
    assert "change the spec, or try it again with `fleet apply --retry`" == first.hint


def test_retry_lifts_a_quarantine_and_no_hold() -> None:
    known = [failed("all/quad", QUAD.fingerprint)]
    assert () == withhold(MADE, [], known, retry=True).withheld
    assert {"c/solo"} == withheld(withhold(MADE, [hold("lane", "solo")], known, retry=True))


def test_a_hold_is_told_before_a_quarantine() -> None:
    made = withhold(MADE, [hold("lane", "quad")], [failed("all/quad", QUAD.fingerprint)])
    assert {"hold"} == {item.kind for item in made.withheld}


def test_what_is_withheld_changes_neither_the_steps_nor_the_id_of_a_plan() -> None:
    made = withhold(MADE, [hold("cluster", "all")], [])
    assert (MADE.id, MADE.steps) == (made.id, made.steps)
    assert MADE.id == sealed(made).id
    assert MADE == withhold(made, [], [])


def test_what_is_stale_is_withheld_before_all_else() -> None:
    stale = Stale("c/solo/boot/n3/start", "c/solo", "n3", "boot id (n3 was rebooted)", "one", "two")
    made = withhold(MADE, [hold("lane", "solo")], [], stale=[stale])
    why = "stale on n3: boot id (n3 was rebooted): one -> two"
    assert (Withheld("c/solo", "stale", why, "`fleet plan` shows what is to be done now"),) == made.withheld


def test_the_summary_tells_each_cause_once() -> None:
    made = withhold(MADE, [hold("lane", "quad")], [])
    expected = "withheld: all/quad: lane quad is held by ops@laptop: a demo runs\n`fleet release 1f00` ends the hold"
    assert expected == withheld_summary(made) == withheld_summary(going(made))


def test_a_plan_of_which_nothing_is_withheld_goes_on_as_it_is() -> None:
    assert MADE is going(MADE)


def test_all_withheld_leaves_nothing_to_do() -> None:
    made = withhold(MADE, [hold("cluster", "all"), hold("cluster", "c")], [])
    assert going(made).is_empty


@many
@given(worlds(), st.sampled_from(NODES))
def test_no_step_goes_on_that_touches_a_held_node_or_needs_one_that_does(world: World, node: str) -> None:
    made = going(withhold(planned(world), [hold("node", node)], []))
    assert node not in {step.node for step in made.steps}
    assert {step.id for step in made.steps} >= {needed for step in made.steps for needed in step.requires}


REFUSED = Refusal("memory-room", "c/big", "n9", "no room on n9")


@pytest.mark.parametrize(("what", "name"), [("lane", "big"), ("cluster", "c"), ("node", "n9")])
def test_a_refused_lane_that_is_held_keeps_nothing_else_from_going_on(what: HoldKind, name: str) -> None:
    made = withhold(replace(MADE, refusals=(REFUSED,)), [hold(what, name)], [])
    assert "c/big" in withheld(made)
    assert () == stands_in_the_way(made)
    assert () == going(made).refusals
    assert going(made).steps


def test_a_refused_lane_that_nobody_holds_stands_in_the_way() -> None:
    made = withhold(replace(MADE, refusals=(REFUSED,)), [hold("lane", "solo")], [])
    assert ((REFUSED,), (REFUSED,)) == (stands_in_the_way(made), going(made).refusals)


def test_what_is_refused_for_the_whole_fleet_stands_in_the_way_whatever_is_held() -> None:
    whole = replace(REFUSED, gang="")
    made = withhold(replace(MADE, refusals=(whole,)), [hold("node", "n9")], [])
    assert (whole,) == stands_in_the_way(made)
