"""Whether a commit is applied: each rule alone, and which of two goes first."""

from dataclasses import replace
from typing import Any

import pytest

from reconciler.core.gitops.decide import decide
from reconciler.core.gitops.decision import Adopt, Apply, Bar, Commit, Look, Nothing, Seen, Stop, Wait
from reconciler.core.gitops.forward import barred
from reconciler.core.gitops.looks import Planned, observation_of
from reconciler.core.gitops.memory import Attempt, Outcome, Remembered, Suspension
from reconciler.core.gitops.settings import Settings
from reconciler.core.gitops.windows import OPEN, Closed, Opening
from reconciler.core.objection import Level, Objection
from reconciler.core.plan import Refusal
from reconciler.core.withhold import Failed, Held
from tests.unit.core.build import gang, unknown
from tests.unit.core.gitops.scenes import (
    BOTH,
    EMPTY,
    HEAD,
    NEW_A,
    NODES,
    NOW_S,
    OLD,
    A,
    B,
    but,
    look,
    proved,
    scene,
    without,
)

FIRST = look([A, B], EMPTY)
UPGRADE = look([NEW_A, B], BOTH)
BEFORE = proved(OLD, A, B)
HELD_A = Held("1f00", "lane", "a", "ops@laptop", "a demo")
FAILED_A = Failed("c/a", NEW_A.fingerprint, "rank 1 exited 137", "run1", "noon")


def attempt(outcome: Outcome) -> Attempt:
    """The head was tried, while the same was seen."""
    return Attempt(HEAD, UPGRADE.observation, outcome, NOW_S - 9000, "as it was told")


def tried(*outcomes: Outcome, at_s: float = NOW_S - 9000) -> Remembered:
    """The head was tried, while other things were seen."""
    attempts = tuple(Attempt(HEAD, f"seen {n}", item, at_s, "as it was told") for n, item in enumerate(outcomes))
    return replace(BEFORE, applied=HEAD, attempts=attempts)


def test_before_anything_was_fetched_it_waits() -> None:
    assert isinstance(decide(Seen(NOW_S, None)), Wait)


def test_a_new_commit_is_looked_at_before_anything_else_is_said() -> None:
    assert Look(HEAD) == decide(scene())
    assert isinstance(decide(scene(None, plans={HEAD: None})), Wait)


def test_the_first_commit_is_applied_whole() -> None:
    assert Apply(HEAD, ("c/a", "c/b")) == decide(scene(FIRST, head=HEAD))


def test_a_new_commit_is_applied_with_what_it_changes() -> None:
    assert Apply(HEAD, ("c/a",)) == decide(scene(UPGRADE, remembered=BEFORE))


def test_a_new_commit_also_mends_what_drifted_before_it() -> None:
    planned = look([NEW_A, B], without(BOTH, "n3"))
    assert Apply(HEAD, ("c/a", "c/b")) == decide(scene(planned, remembered=BEFORE))


def test_a_commit_that_changes_nothing_of_what_runs_is_taken_as_applied() -> None:
    assert Adopt(HEAD) == decide(scene(look([A, B], BOTH), remembered=BEFORE))
    assert Adopt(HEAD) == decide(scene(look([A, B], BOTH)))


def test_an_applied_commit_has_nothing_to_do() -> None:
    found = decide(scene(look([A, B], BOTH), remembered=proved(HEAD, A, B)))
    assert (True, ()) == (isinstance(found, Nothing), found.drifted if isinstance(found, Nothing) else None)


def test_drift_is_left_to_healing() -> None:
    found = decide(scene(look([A, B], without(BOTH, "n3")), remembered=proved(HEAD, A, B)))
    assert isinstance(found, Nothing)
    assert ("c/b",) == found.drifted
    assert f"{HEAD[:12]} is applied; drifted since, and not repaired, as `heal: off` says: c/b" == found.why


GATED = {
    "not-forward": (Commit(HEAD, descends=False), Bar.NOT_FORWARD, "does not come after 000000000000"),
    "unsigned": (Commit(HEAD, True, unsigned="no signature"), Bar.UNSIGNED, "no signature"),
    "broken": (Commit(HEAD, True, broken="fleet.yaml:3:1: unknown key"), Bar.BROKEN, "fleet.yaml:3:1"),
    "rewritten before broken": (Commit(HEAD, False, broken="x"), Bar.NOT_FORWARD, "was rewritten"),
    "unsigned before broken": (Commit(HEAD, True, unsigned="by nobody", broken="x"), Bar.UNSIGNED, "by nobody"),
}


@pytest.mark.parametrize("what", GATED)
def test_what_does_not_pass_a_gate_is_not_even_looked_at(what: str) -> None:
    head, bar, told = GATED[what]
    found = decide(replace(scene(remembered=BEFORE), head=head))
    assert isinstance(found, Stop)
    assert (bar, True) == (found.bar, told in found.summary)


def test_whether_it_comes_after_is_waited_for_where_it_cannot_be_told() -> None:
    head = Commit(HEAD, descends=None)
    assert isinstance(decide(replace(scene(UPGRADE, remembered=BEFORE), head=head)), Wait)
    assert isinstance(decide(replace(scene(FIRST), head=head)), Apply)


def test_a_commit_without_any_lane_is_refused_unless_it_is_meant() -> None:
    for is_meant in (False, True):
        found = decide(scene(look([], BOTH, allow_empty=is_meant), remembered=BEFORE))
        assert isinstance(found, Stop)
        assert Bar.EMPTY is found.bar
    meant = replace(scene(look([], BOTH, allow_empty=True), remembered=BEFORE), settings=Settings(allow_empty=True))
    assert Apply(HEAD, ("c/a", "c/b")) == decide(meant)


def test_what_the_plan_refuses_is_not_tried() -> None:
    refusal = Refusal("disk", "c/a", "n1", "no room on n1", "free some disk")
    refused = replace(UPGRADE, plan=replace(UPGRADE.plan, refusals=(refusal,)))
    found = decide(scene(refused, remembered=BEFORE))
    assert isinstance(found, Stop)
    assert (Bar.REFUSED, "free some disk") == (found.bar, found.hint)


def test_holds_are_respected_and_the_rest_goes_on() -> None:
    found = decide(scene(look([A, B], EMPTY, holds=[HELD_A])))
    assert Apply(HEAD, ("c/b",)) == found
    all_held = decide(scene(look([NEW_A, B], BOTH, holds=[HELD_A]), remembered=BEFORE))
    assert isinstance(all_held, Wait)
    assert "lane a is held by ops@laptop: a demo" in all_held.why


def test_a_version_that_failed_waits_for_a_new_commit() -> None:
    found = decide(scene(look([NEW_A, B], BOTH, failed=[FAILED_A]), remembered=tried(Outcome.FAILED)))
    assert isinstance(found, Stop)
    assert (Bar.QUARANTINED, True) == (found.bar, "rank 1 exited 137" in found.summary)


def test_one_attempt_for_a_commit_and_what_was_seen() -> None:
    for outcome in (Outcome.FAILED, Outcome.PARTIAL, Outcome.REFUSED, Outcome.APPLIED):
        remembered = replace(BEFORE, applied=HEAD, attempts=(attempt(outcome),))
        assert isinstance(decide(scene(UPGRADE, remembered=remembered)), Wait)


@pytest.mark.parametrize("outcome", [Outcome.BEGUN, Outcome.INTERRUPTED, Outcome.LEASE_HELD])
def test_what_was_broken_off_or_never_began_is_no_attempt(outcome: Outcome) -> None:
    remembered = replace(BEFORE, applied=HEAD, attempts=(attempt(outcome),))
    assert Apply(HEAD, ("c/a",)) == decide(scene(UPGRADE, remembered=remembered))


def test_when_something_else_is_seen_it_is_tried_again_but_only_what_is_new() -> None:
    planned = look([NEW_A, B], without(BOTH, "n3"))
    assert Apply(HEAD, ("c/a",)) == decide(scene(planned, remembered=tried(Outcome.PARTIAL)))


def test_a_hold_that_ends_is_something_else_that_is_seen() -> None:
    held, free = look([NEW_A], BOTH, holds=[HELD_A]), look([NEW_A], BOTH)
    assert held.observation != free.observation


def test_an_agent_that_dies_over_a_commit_again_and_again_lets_it_be() -> None:
    twice = tried(Outcome.BEGUN, Outcome.BEGUN)
    assert isinstance(decide(scene(UPGRADE, remembered=twice)), Apply)
    found = decide(scene(UPGRADE, remembered=tried(*[Outcome.BEGUN] * 3)))
    assert isinstance(found, Stop)
    assert Bar.DIED is found.bar


def test_what_needs_a_person_is_not_tried_again_whatever_is_seen() -> None:
    found = decide(scene(UPGRADE, remembered=tried(Outcome.NEEDS_A_PERSON)))
    assert isinstance(found, Stop)
    assert (Bar.NEEDS_A_PERSON, True) == (found.bar, "fleet gitops retry" in found.hint)
    assert isinstance(decide(scene(UPGRADE, remembered=tried(Outcome.NEEDS_A_PERSON).again())), Apply)


@pytest.mark.parametrize(("failures", "pause"), [(1, 60.0), (2, 120.0), (3, 240.0), (9, 3600.0)])
def test_the_pause_after_failures_grows_up_to_a_cap(failures: int, pause: float) -> None:
    remembered = tried(*[Outcome.FAILED] * failures, at_s=NOW_S)
    found = decide(scene(UPGRADE, remembered=remembered))
    assert isinstance(found, Wait)
    assert NOW_S + pause == found.until_s
    assert isinstance(decide(scene(UPGRADE, remembered=remembered, now_s=NOW_S + pause)), Apply)


def test_a_clock_that_was_set_back_years_holds_no_commit_up() -> None:
    remembered = tried(Outcome.FAILED, at_s=NOW_S + 90e6)
    assert isinstance(decide(scene(UPGRADE, remembered=remembered)), Apply)


def test_a_commit_whose_files_are_not_to_be_had_waits() -> None:
    missing = replace(scene(UPGRADE), head=Commit(HEAD, descends=True, missing="the disk is full"))
    assert Wait(f"the files of {HEAD[:12]} are not to be had: the disk is full") == decide(missing)


def test_a_new_commit_does_not_wait_for_what_failed_before_it() -> None:
    remembered = replace(tried(*[Outcome.NEEDS_A_PERSON] * 4, at_s=NOW_S))
    newer = "2" * 40
    found = decide(scene(look([A, B], without(BOTH, "n3")), head=newer, remembered=remembered))
    assert Apply(newer, ("c/b",)) == found


def test_while_suspended_nothing_is_applied_until_it_lapses() -> None:
    told = Suspension("ops@laptop", "a demo", NOW_S - 1, NOW_S + 60)
    found = decide(scene(UPGRADE, remembered=BEFORE, suspended=told))
    assert Wait("suspended by ops@laptop: a demo", NOW_S + 60) == found
    assert isinstance(decide(scene(UPGRADE, remembered=BEFORE, suspended=told, now_s=NOW_S + 60)), Apply)


def test_outside_of_the_windows_it_waits_until_they_open() -> None:
    for opening in (Opening(denied=Closed("denied", 5.0)), Opening(outside=Closed("outside", 5.0))):
        found = decide(scene(UPGRADE, remembered=BEFORE, opening=opening))
        assert isinstance(found, Wait)
        assert 5.0 == found.until_s


def test_a_protected_lane_is_stopped_in_a_window_that_allows_it_only() -> None:
    for pattern in ("a", "c/a", "*"):
        told = scene(UPGRADE, remembered=BEFORE, settings=Settings(protected=(pattern,)))
        found = decide(told)
        assert isinstance(found, Stop)
        assert (Bar.PROTECTED, True) == (found.bar, found.summary.endswith("would stop protected lanes: c/a"))
        assert isinstance(decide(replace(told, opening=Opening(is_allowed=True))), Apply)
    assert isinstance(decide(scene(UPGRADE, remembered=BEFORE, settings=Settings(protected=("b",)))), Apply)
    assert isinstance(decide(scene(FIRST, settings=Settings(protected=("a",)))), Apply)


def objected(level: Level, gang_of_it: str = "") -> Planned:
    """The upgrade, to which a policy objects."""
    said = Objection("not on a Friday", gang_of_it, "wait", "fridays", level)
    made = replace(UPGRADE.plan, objections=(said,))
    return replace(UPGRADE, plan=made, observation=observation_of(made))


def test_a_mandatory_policy_that_objects_holds_a_commit_up_and_an_advisory_one_does_not() -> None:
    for about in ("", "c/a"):
        found = decide(scene(objected(Level.MANDATORY, about), remembered=BEFORE))
        assert isinstance(found, Stop)
        assert (Bar.POLICY, True, "wait") == (found.bar, "policy fridays objects to" in found.summary, found.hint)
    assert isinstance(decide(scene(objected(Level.ADVISORY), remembered=BEFORE)), Apply)
    assert isinstance(decide(scene(objected(Level.MANDATORY, "c/b"), remembered=BEFORE)), Apply)


def test_when_a_policy_stops_objecting_it_is_worth_another_try() -> None:
    assert objected(Level.MANDATORY).observation != UPGRADE.observation == objected(Level.ADVISORY).observation


@pytest.mark.parametrize(
    ("others", "bar"),
    [
        ({"suspended": Suspension("ops", "why", 0.0)}, "suspended by ops: why"),
        ({"suspended": Suspension("ops", "why", 0.0, NOW_S)}, None),
        ({"opening": Opening(outside=Closed("outside", None))}, "outside"),
        ({"settings": Settings(stops=0)}, "would stop 1 lane, and the budget is 0: c/a"),
        ({"settings": Settings(protected=("a",))}, "would stop protected lanes: c/a"),
        ({"settings": Settings(protected=("a",)), "opening": Opening(is_allowed=True)}, None),
    ],
)
def test_a_plan_of_a_job_that_nobody_watches_is_held_against_the_same_guards(
    others: dict[str, Any], bar: str | None
) -> None:
    given: dict[str, Any] = {"settings": Settings(), "opening": OPEN, "suspended": None, **others}
    found = barred(UPGRADE.plan, now_s=NOW_S, **given)
    told = None if found is None else found.why if isinstance(found, Wait) else found.summary
    assert bar is told or (bar is not None and told is not None and told.endswith(bar))


def test_so_many_lanes_stop_and_no_more_and_they_are_named() -> None:
    both = look([NEW_A, gang("b", ("n3",), "serve", "--faster")], BOTH)
    found = decide(scene(both, remembered=BEFORE, settings=Settings(stops=1)))
    assert isinstance(found, Stop)
    assert (Bar.BUDGET, True) == (found.bar, "2 lanes, and the budget is 1: c/a, c/b" in found.summary)
    assert isinstance(decide(scene(both, remembered=BEFORE, settings=Settings(stops=2))), Apply)
    assert isinstance(decide(scene(UPGRADE, remembered=BEFORE, settings=Settings(stops=1))), Apply)


def test_lanes_that_are_removed_or_make_room_count_as_stopped_and_booted_ones_do_not() -> None:
    no_stops = Settings(stops=0)
    assert isinstance(decide(scene(look([A], BOTH), remembered=BEFORE, settings=no_stops)), Stop)
    wide = gang("wide", NODES, cluster="all")
    found = decide(scene(look([wide], BOTH), remembered=BEFORE, settings=Settings(stops=1)))
    assert isinstance(found, Stop)
    assert "c/a, c/b" in found.summary
    assert isinstance(decide(scene(FIRST, settings=no_stops)), Apply)


def test_a_node_that_cannot_be_reached_holds_up_only_what_is_on_it() -> None:
    planned = look([NEW_A, gang("b", ("n3",), "serve", "--faster")], but(BOTH, unknown("n3")))
    assert Apply(HEAD, ("c/a",)) == decide(scene(planned, remembered=BEFORE))
    waiting = look([A, B], but(BOTH, unknown("n3")))
    assert Adopt(HEAD) == decide(scene(waiting, remembered=BEFORE))
    assert isinstance(decide(scene(waiting, remembered=replace(BEFORE, applied=HEAD))), Wait)
