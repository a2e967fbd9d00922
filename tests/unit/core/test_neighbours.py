"""Who else of this fleet runs on a node."""

from dataclasses import replace

from reconciler.core.neighbours import intruders, told
from reconciler.core.observed import Container
from reconciler.core.plan import Op, Phase, Step
from tests.unit.core.build import container, desired, facts, foreign, gang, observed, plan

MINE = gang("mine", ("n1",))
OTHER = gang("other", ("n1",))
RUN = "run"
START = Step("c/mine/boot/n1/start", "c/mine", Phase.BOOT, Op.START, "n1", "fleet-mine-r0-v1.unproved", "wanted")
BACK = replace(START, phase=Phase.ROLLBACK)


def names(*found: Container) -> list[str]:
    made = plan(desired(MINE), observed(facts("n1")))
    return [item.name for item in intruders(made, START, facts("n1", *found), RUN)]


def test_a_running_lane_that_the_plan_does_not_know_is_an_intruder() -> None:
    assert ["fleet-other-r0-v1"] == names(container(OTHER))


def test_another_generation_of_the_same_lane_that_somebody_started_meanwhile_is_an_intruder() -> None:
    assert ["fleet-mine-r0-v1"] == names(container(MINE))


def test_what_this_run_made_is_none() -> None:
    owner = container(MINE).owner
    assert owner is not None
    made = container(MINE, owner=replace(owner, operation="run/c/mine/stage/n1/create"))
    assert [] == names(made)
    planned = plan(desired(MINE), observed(facts("n1")))
    assert 1 == len(intruders(planned, BACK, facts("n1", made), RUN)), "on the way back it has been stopped"


def test_what_may_come_back_is_none() -> None:
    there = facts("n1", container(gang("mine", ("n1",), "old")))
    made = plan(desired(MINE), observed(there))
    assert () == intruders(made, BACK, there, RUN)
    assert 1 == len(intruders(made, START, there, RUN))


def test_what_lay_stopped_to_be_removed_and_was_started_meanwhile_is_an_intruder() -> None:
    old = gang("mine", ("n1",), "old")
    made = plan(desired(MINE), observed(facts("n1", container(old, state="exited", proved=False))))
    assert 1 == len(intruders(made, START, facts("n1", container(old, proved=False)), RUN))


def test_what_is_stopped_foreign_or_of_another_fleet_is_none() -> None:
    assert [] == names(container(OTHER, state="exited"), foreign(), container(OTHER, fleet="another"))


def test_a_lane_that_stays_beside_it_is_none() -> None:
    kept = gang("kept", ("n2",))
    there = facts("n2", container(kept))
    made = plan(desired(MINE, kept), observed(facts("n1"), there))
    assert () == intruders(made, START, there, "run")


def test_it_is_told_by_name_and_node() -> None:
    expected = "fleet-other-r0-v1 of this fleet runs on n1, and not by this plan: is another apply at work?"
    assert expected == told("n1", (container(OTHER),))
