"""The rules that say what state a wanted gang is in: one test a rule, then who wins where several hold."""

from typing import Any

import pytest

from reconciler.core.classify import RULES, GangView, Situation, by_gang, classify, ours, view_of
from reconciler.core.desired import Gang
from reconciler.core.observed import Observed
from tests.unit.core.build import container, desired, facts, foreign, gang, observed, unknown, world

PAIR = gang("a", ("n1", "n2"))
OLD = gang("a", ("n1", "n2"), "serve", "--old")


def view(wanted: Gang, seen: Observed) -> GangView:
    return view_of(wanted, by_gang(ours(desired(wanted), seen)).get(wanted.address, ()), seen)


def situation(wanted: Gang, seen: Observed) -> Situation:
    return classify(view(wanted, seen)).situation


def test_a_node_that_cannot_be_read_decides_nothing() -> None:
    seen = observed(facts("n1", container(PAIR, 0)), unknown("n2"))
    assert Situation.UNKNOWN == situation(PAIR, seen)


def test_every_rank_up_and_proved_is_in_sync() -> None:
    assert Situation.IN_SYNC == situation(PAIR, world(PAIR))


@pytest.mark.parametrize(
    "left",
    [
        pytest.param(
            observed(
                facts("n1", container(PAIR, 0), container(OLD, 0, revision=0)),
                facts("n2", container(PAIR, 1)),
                facts("n3"),
            ),
            id="running generation",
        ),
        pytest.param(
            observed(
                facts("n1", container(PAIR, 0), container(OLD, 0, revision=0, state="exited")),
                facts("n2", container(PAIR, 1)),
                facts("n3"),
            ),
            id="stopped generation",
        ),
        pytest.param(
            observed(
                facts("n1", container(PAIR, 0)),
                facts("n2", container(PAIR, 1)),
                facts("n3", container(PAIR, 1, node="n3")),
            ),
            id="stray on another node",
        ),
    ],
)
def test_in_sync_with_containers_left_over_is_littered(left: Observed) -> None:
    assert Situation.LITTERED == situation(PAIR, left)


def test_every_rank_up_but_never_proved_is_unproved() -> None:
    assert Situation.UNPROVED == situation(PAIR, world(PAIR, proved=False))


def test_one_rank_without_proof_makes_the_gang_unproved() -> None:
    seen = observed(facts("n1", container(PAIR, 0)), facts("n2", container(PAIR, 1, proved=False)))
    assert Situation.UNPROVED == situation(PAIR, seen)


def test_running_as_something_else_is_changed() -> None:
    assert Situation.CHANGED == situation(PAIR, world(OLD))


def test_running_where_no_rank_belongs_is_changed_when_it_is_something_else() -> None:
    moved = gang("a", ("n3", "n4"))
    assert Situation.CHANGED == situation(moved, observed(facts("n1", container(OLD, 0)), facts("n3"), facts("n4")))


@pytest.mark.parametrize(
    "changed",
    [{"command": ("serve", "--by-hand")}, {"restart_policy": "always"}, {"auto_remove": True}, {"image_id": "other"}],
    ids=lambda changed: next(iter(changed)),
)
def test_a_running_rank_changed_by_hand_is_drifted(changed: dict[str, Any]) -> None:
    seen = observed(facts("n1", container(PAIR, 0, **changed)), facts("n2", container(PAIR, 1)))
    assert Situation.DRIFTED == situation(PAIR, seen)


@pytest.mark.parametrize("state", ["exited", "dead", "created", "paused", "restarting"])
def test_one_rank_not_running_breaks_the_gang(state: str) -> None:
    seen = observed(facts("n1", container(PAIR, 0)), facts("n2", container(PAIR, 1, state=state)))
    assert Situation.BROKEN == situation(PAIR, seen)


def test_one_rank_missing_breaks_the_gang() -> None:
    assert Situation.BROKEN == situation(PAIR, observed(facts("n1", container(PAIR, 0)), facts("n2")))


def test_ranks_that_changed_places_break_the_gang() -> None:
    turned = gang("a", ("n2", "n1"))
    assert Situation.BROKEN == situation(turned, world(PAIR))


@pytest.mark.parametrize("state", ["exited", "dead", "created"])
def test_containers_of_which_none_runs_are_a_stopped_gang(state: str) -> None:
    assert Situation.STOPPED == situation(PAIR, world(PAIR, state=state))


def test_only_old_containers_that_stopped_are_a_stopped_gang() -> None:
    assert Situation.STOPPED == situation(PAIR, world(OLD, state="exited"))


def test_nothing_there_is_absent() -> None:
    assert Situation.ABSENT == situation(PAIR, world(nodes=("n1", "n2")))


def test_containers_of_others_do_not_count() -> None:
    other_fleet = container(PAIR, 0, fleet="other")
    other_lane = container(gang("b", ("n2",)), 0)
    seen = observed(facts("n1", other_fleet, foreign("fleet-a-r0-v1.unproved")), facts("n2", other_lane))
    assert Situation.ABSENT == situation(PAIR, seen)


def test_every_rule_has_a_situation_of_its_own_and_a_sentence() -> None:
    assert {*Situation} == {rule.situation for rule in RULES}
    assert len(RULES) == len({rule.sentence for rule in RULES})


PRECEDENCE = [
    (
        "an unknown node wins over a gang that is changed",
        Situation.UNKNOWN,
        observed(facts("n1", container(OLD, 0)), unknown("n2")),
    ),
    (
        "litter does not hide that the gang was never proved",
        Situation.UNPROVED,
        observed(
            facts("n1", container(PAIR, 0, proved=False), container(OLD, 0, revision=0)),
            facts("n2", container(PAIR, 1)),
        ),
    ),
    (
        "a new spec wins over a dead rank",
        Situation.CHANGED,
        observed(facts("n1", container(OLD, 0)), facts("n2", container(OLD, 1, state="exited"))),
    ),
    (
        "a new spec wins over a change by hand",
        Situation.CHANGED,
        observed(facts("n1", container(OLD, 0)), facts("n2", container(PAIR, 1, restart_policy="always"))),
    ),
    (
        "a change by hand wins over a dead rank",
        Situation.DRIFTED,
        observed(
            facts("n1", container(PAIR, 0, restart_policy="always")), facts("n2", container(PAIR, 1, state="exited"))
        ),
    ),
    (
        "a change by hand on a dead rank is only a dead rank",
        Situation.BROKEN,
        observed(
            facts("n1", container(PAIR, 0)), facts("n2", container(PAIR, 1, state="exited", restart_policy="always"))
        ),
    ),
    (
        "new ranks that wait beside running old ones are a change",
        Situation.CHANGED,
        observed(
            facts("n1", container(OLD, 0), container(PAIR, 0, revision=2, state="created", proved=False)),
            facts("n2", container(OLD, 1)),
        ),
    ),
]


@pytest.mark.parametrize(("sentence", "expected", "seen"), PRECEDENCE, ids=[row[0] for row in PRECEDENCE])
def test_precedence(sentence: str, expected: Situation, seen: Observed) -> None:
    assert expected == situation(PAIR, seen), sentence


def test_the_running_container_stands_for_its_rank_before_a_newer_one_that_does_not_run() -> None:
    newer = container(PAIR, 0, revision=3, state="created", proved=False)
    running = container(PAIR, 0, revision=2)
    found = view(PAIR, observed(facts("n1", newer, running), facts("n2"))).ranks[0]
    assert running == found.fit
    assert running == found.present


def test_of_several_stopped_containers_the_newest_stands_for_its_rank() -> None:
    one, two = (container(PAIR, 0, revision=number, state="exited") for number in (1, 2))
    found = view(PAIR, observed(facts("n1", one, two), facts("n2"))).ranks[0]
    assert two == found.fit
    assert (two, one) == found.found


def test_a_node_that_was_never_asked_is_a_fault_of_the_caller() -> None:
    with pytest.raises(KeyError, match="n2 was not observed"):
        situation(PAIR, observed(facts("n1")))
