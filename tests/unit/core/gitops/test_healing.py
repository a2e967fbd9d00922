"""What drifted is repaired to what it was proved to be: never an upgrade, not for ever, and whatever a commit does."""

from dataclasses import replace
from typing import Any

import pytest

from reconciler.core.gitops.decision import Apply, Bar, Commit, GiveUp, Heal, Nothing, Seen, Stop, Wait
from reconciler.core.gitops.looks import Planned
from reconciler.core.gitops.memory import Attempt, Healed, Outcome, Proven, Remembered, Suspension
from reconciler.core.gitops.settings import Heal as Mode
from reconciler.core.gitops.settings import Settings
from reconciler.core.gitops.windows import Closed, Opening
from reconciler.core.objection import Level, Objection
from reconciler.core.observed import Observed
from reconciler.core.plan import Refusal
from reconciler.core.withhold import Failed, Held
from tests.unit.core.build import container, containers, facts, gang, unknown, world
from tests.unit.core.gitops.scenes import (
    BOTH,
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
    settled,
    without,
)

ON = Settings(heal=Mode.ON)
GONE_B = without(BOTH, "n3")
DEAD_A = but(BOTH, facts("n2", container(A, 1, state="exited")))
BY_HAND = but(BOTH, facts("n3", container(B, restart_policy="always")))
UNPROVED_B = but(BOTH, facts("n3", container(B, proved=False)))
STOPPED_B = but(BOTH, facts("n3", container(B, state="exited")))
FAILED_B = Failed("c/b", B.fingerprint, "rank 0 exited 137", "run1", "noon")


def applied(**others: Any) -> Remembered:
    return proved(HEAD, A, B, **others)


def seen(world_now: Observed, **others: Any) -> tuple[Seen, dict[str, Planned | None]]:
    """The applied commit and the fleet; healing is on."""
    given = {"remembered": applied(), "settings": ON, **others}
    return scene(None, **given), {HEAD: look([A, B], world_now)}


@pytest.mark.parametrize(
    ("drifted", "gang_of_it"),
    [(GONE_B, "c/b"), (DEAD_A, "c/a"), (BY_HAND, "c/b"), (UNPROVED_B, "c/b"), (STOPPED_B, "c/b")],
    ids=["containers removed", "a rank died", "changed by hand", "not proved any more", "stopped"],
)
def test_what_drifted_is_repaired_and_nothing_else(drifted: Observed, gang_of_it: str) -> None:
    assert Heal(HEAD, (gang_of_it,)) == settled(*seen(drifted))


def test_off_says_what_drifted_and_report_says_that_it_is_left_so() -> None:
    off = settled(*seen(GONE_B, settings=Settings()))
    told = settled(*seen(GONE_B, settings=Settings(heal=Mode.REPORT)))
    assert isinstance(off, Nothing)
    assert isinstance(told, Nothing)
    assert (("c/b",), ("c/b",)) == (off.drifted, told.drifted)
    assert "`heal: report`" in told.why


def test_a_lane_that_was_never_proved_is_not_repaired() -> None:
    found = settled(*seen(GONE_B, remembered=proved(HEAD, A)))
    assert isinstance(found, Apply)  # it is what the commit still has to do


def test_what_a_person_brought_to_another_version_is_left_to_them() -> None:
    """`fleet rollback`, or an apply of something else: to take it back would fight the person."""
    other = but(BOTH, *(facts(node, item) for node, item in containers(NEW_A).items()))
    found = settled(*seen(other))
    assert isinstance(found, Nothing)
    assert ("c/a",) == found.drifted


def test_a_lane_that_somebody_started_is_not_stopped() -> None:
    extra = gang("extra", ("n4",))
    found = settled(*seen(but(BOTH, facts("n4", container(extra)))))
    assert isinstance(found, Nothing)


def test_a_repair_that_would_have_to_stop_another_lane_is_none() -> None:
    guest = gang("guest", ("n3",), cluster="d")
    found = settled(*seen(but(BOTH, facts("n3", container(guest)))))
    assert isinstance(found, Nothing)


WAITING = replace(applied(), applied=OLD, good=OLD, proven=proved(OLD, A, B).proven)


@pytest.mark.parametrize(
    "head",
    [Commit(HEAD, descends=False), Commit(HEAD, True, unsigned="by nobody"), Commit(HEAD, True, broken="bad YAML")],
    ids=["not forward", "unsigned", "broken"],
)
def test_a_commit_that_is_barred_does_not_switch_healing_off(head: Commit) -> None:
    asked = replace(scene(None, remembered=WAITING, settings=ON), head=head)
    assert Heal(OLD, ("c/b",)) == settled(asked, {OLD: look([A, B], GONE_B)})


def test_nor_does_one_that_failed_and_a_lane_that_it_did_not_change_is_repaired_as_the_new_one_has_it() -> None:
    """`a` was rolled back to what the commit before had; `b` is as both have it."""
    remembered = replace(WAITING, applied=HEAD, attempts=(Attempt(HEAD, "x", Outcome.FAILED, NOW_S - 9000),))
    failed = Failed("c/a", NEW_A.fingerprint, "rank 1 exited 137", "run1", "noon")
    both_gone = without(BOTH, *NODES)
    looks: dict[str, Planned | None] = {
        HEAD: look([NEW_A, B], both_gone, failed=[failed]),
        OLD: look([A, B], both_gone),
    }
    assert Heal(OLD, ("c/a", "c/b")) == settled(scene(None, remembered=remembered, settings=ON), looks)


def test_never_an_upgrade_the_old_version_is_repaired_while_the_new_one_waits() -> None:
    closed = Opening(outside=Closed("outside", None))
    looks: dict[str, Planned | None] = {HEAD: look([NEW_A, B], DEAD_A), OLD: look([A, B], DEAD_A)}
    found = settled(scene(None, remembered=WAITING, settings=ON, opening=closed), looks)
    assert Heal(OLD, ("c/a",)) == found


def test_a_lane_that_a_later_commit_took_away_is_not_brought_back() -> None:
    """The agent died after that commit was applied, and the next one is broken."""
    remembered = replace(WAITING, applied=HEAD)
    asked = replace(scene(None, remembered=remembered, settings=ON), head=Commit("2" * 40, True, broken="bad YAML"))
    only_a = world(A, nodes=NODES)
    found = settled(asked, {HEAD: look([A], only_a), OLD: look([A, B], only_a)})
    assert isinstance(found, Stop)
    assert Bar.BROKEN is found.bar


def test_while_suspended_or_denied_nothing_is_repaired_but_outside_of_what_is_allowed_it_is() -> None:
    told = Suspension("ops@laptop", "a demo", NOW_S - 1)
    assert Wait("suspended by ops@laptop: a demo") == settled(*seen(GONE_B, suspended=told))
    denied = Opening(denied=Closed("denied: freeze", 5.0))
    assert Wait("denied: freeze", 5.0) == settled(*seen(GONE_B, opening=denied))
    outside = Opening(outside=Closed("outside", 5.0))
    assert isinstance(settled(*seen(GONE_B, opening=outside)), Heal)


def healed(*ago_s: float, gang_of_it: str = "c/b", ok: bool = True) -> Remembered:
    return applied(heals=tuple(Healed(gang_of_it, NOW_S - one, ok) for one in ago_s))


@pytest.mark.parametrize(
    ("ago_s", "until_s"),
    [((30.0,), NOW_S + 30), ((600.0, 30.0), NOW_S + 90), ((30_000.0, 30.0), NOW_S + 30)],
    ids=["once", "twice: twice as long", "one of them long ago"],
)
def test_the_pause_between_two_repairs_grows(ago_s: tuple[float, ...], until_s: float) -> None:
    found = settled(*seen(GONE_B, remembered=healed(*ago_s)))
    assert isinstance(found, Wait)
    assert until_s == found.until_s
    later = seen(GONE_B, remembered=healed(*ago_s), now_s=until_s)
    assert isinstance(settled(*later), Heal)


def test_a_clock_that_was_set_back_years_holds_no_repair_up() -> None:
    ahead = healed(-90e6, -91e6, -92e6, -93e6)
    assert Heal(HEAD, ("c/b",)) == settled(*seen(GONE_B, remembered=ahead))
    a_little = settled(*seen(GONE_B, remembered=healed(-2.0)))
    assert isinstance(a_little, Wait)  # a step of the clock is no new budget
    assert NOW_S + 62 == a_little.until_s


def test_the_pause_of_one_lane_does_not_hold_up_another() -> None:
    both = but(GONE_B, facts("n2", container(A, 1, state="exited")))
    assert Heal(HEAD, ("c/a",)) == settled(*seen(both, remembered=healed(1.0)))


def test_a_lane_that_drifts_too_often_is_given_up_loudly_and_stays_so() -> None:
    often = healed(9000.0, 6000.0, 3000.0)
    found = settled(*seen(GONE_B, remembered=often))
    assert isinstance(found, GiveUp)
    assert GiveUp((("c/b", "it was repaired 3 times within 6 h, and drifted again"),)) == found
    given_up = often.giving_up(dict(found.why), NOW_S)
    for now_s in (NOW_S, NOW_S + 1e6):
        left = settled(*seen(GONE_B, remembered=given_up, now_s=now_s))
        assert isinstance(left, Nothing)
        assert ("c/b",) == left.drifted


def test_it_is_taken_up_again_by_a_person_or_with_another_commit() -> None:
    given_up = applied().giving_up({"c/b": "why"}, NOW_S)
    assert isinstance(settled(*seen(GONE_B, remembered=given_up.again())), Heal)
    newer = "2" * 40
    asked = scene(None, head=newer, remembered=replace(given_up, applied=newer), settings=ON)
    assert isinstance(settled(asked, {newer: look([A, B], GONE_B), HEAD: look([A, B], GONE_B)}), Heal)


def test_a_version_that_failed_when_it_booted_again_is_given_up_at_once() -> None:
    found = settled(scene(None, remembered=applied(), settings=ON), {HEAD: look([A, B], GONE_B, failed=[FAILED_B])})
    assert isinstance(found, GiveUp)
    assert [("c/b", True)] == [(gang_of_it, "rank 0 exited 137" in why) for gang_of_it, why in found.why]


def test_what_is_held_is_not_repaired() -> None:
    hold = Held("1f00", "node", "n3", "ops@laptop", "a fan")
    found = settled(scene(None, remembered=applied(), settings=ON), {HEAD: look([A, B], GONE_B, holds=[hold])})
    assert isinstance(found, Nothing)


def test_a_refusal_of_the_lane_itself_is_told_and_one_of_another_lane_holds_nothing_up() -> None:
    planned = look([A, B], GONE_B)
    for gang_of_it, expected in (("c/a", Heal), ("", Stop)):
        refused = replace(planned, plan=replace(planned.plan, refusals=(Refusal("disk", gang_of_it, "n1", "no room"),)))
        head = Commit("2" * 40, True, broken="bad YAML")
        asked = replace(scene(None, remembered=applied(), settings=ON), head=head)
        found = settled(asked, {HEAD: refused})
        assert isinstance(found, expected)


def test_a_repair_that_stops_what_serves_obeys_budget_and_protection() -> None:
    none_stops = settled(*seen(BY_HAND, settings=replace(ON, stops=0)))
    assert isinstance(none_stops, Stop)
    guarded = settled(*seen(BY_HAND, settings=replace(ON, protected=("b",))))
    assert isinstance(guarded, Stop)
    assert (Bar.BUDGET, Bar.PROTECTED) == (none_stops.bar, guarded.bar)
    assert isinstance(settled(*seen(GONE_B, settings=replace(ON, stops=0, protected=("b",)))), Heal)


def test_a_policy_that_objects_to_a_lane_keeps_it_from_being_repaired() -> None:
    planned = look([A, B], GONE_B)
    for about, expected in (("c/b", Stop), ("c/a", Heal)):
        said = Objection("no", about, "", "mine", Level.MANDATORY)
        told = replace(planned, plan=replace(planned.plan, objections=(said,)))
        assert isinstance(settled(scene(None, remembered=applied(), settings=ON), {HEAD: told}), expected)


def test_a_lane_that_is_down_does_not_count_as_stopped_when_it_is_repaired() -> None:
    assert isinstance(settled(*seen(DEAD_A, settings=replace(ON, stops=0, protected=("a",)))), Heal)


def test_what_was_proved_as_something_else_than_the_commit_wants_is_no_drift_of_it() -> None:
    other = replace(applied(), proven=(Proven("c/a", NEW_A.fingerprint, HEAD), applied().proven[1]))
    head = Commit("2" * 40, True, broken="bad YAML")
    asked = replace(scene(None, remembered=other, settings=ON), head=head)
    assert isinstance(settled(asked, {HEAD: look([A, B], DEAD_A)}), Stop)


def test_what_bars_a_commit_is_told_before_drift_that_is_left_alone() -> None:
    head = Commit("2" * 40, True, broken="bad YAML")
    asked = replace(scene(None, remembered=applied(), settings=Settings(heal=Mode.REPORT)), head=head)
    assert isinstance(settled(asked, {HEAD: look([A, B], GONE_B)}), Stop)


def test_a_node_that_cannot_be_reached_is_no_drift() -> None:
    found = settled(*seen(but(BOTH, unknown("n3"))))
    assert isinstance(found, Wait)


def test_a_commit_whose_files_are_gone_is_not_repaired_from() -> None:
    head = Commit("2" * 40, True, broken="bad YAML")
    asked = replace(scene(None, remembered=applied(), settings=ON), head=head)
    assert isinstance(settled(asked, {HEAD: None}), Stop)
