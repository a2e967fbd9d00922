"""The apply state machine: the table of moves, and who goes on when something ends badly."""

import itertools
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.core.desired import Ready
from reconciler.core.machine import BAD, GOOD, MOVES, TURNING_PHASES, IllegalMove, Machine, Status
from reconciler.core.plan import Phase, Plan, Step
from tests.unit.core.build import desired, gang, ids, plan, world
from tests.unit.core.worlds import World, worlds

PAIR = gang("a", ("n1", "n2"), boot_order=((1,), (0,)), ready=Ready(50052))
TRIO = gang("t", ("n1", "n2", "n3"))
OTHER = gang("b", ("n4",))


def two_boots() -> Plan:
    """Two lanes that boot and have nothing to do with each other."""
    return plan(desired(PAIR, OTHER), world(nodes=("n1", "n2", "n4")))


def run(machine: Machine, ends: dict[str, Status] | None = None) -> list[str]:
    """Run to the end in the order that steps become ready; `ends`: how some steps end. The ids in that order."""
    todo, ran = list(machine.begin()), list[str]()
    while todo:
        step = todo.pop(0)
        ran.append(step.id)
        todo += machine.ended(step.id, (ends or {}).get(step.id, Status.APPLIED))
    return ran


MOVES_ALLOWED = {
    (Status.PENDING, Status.RUNNING),
    (Status.PENDING, Status.SKIPPED),
    (Status.RUNNING, Status.APPLIED),
    (Status.RUNNING, Status.NOOP),
    (Status.RUNNING, Status.STALE),
    (Status.RUNNING, Status.FAILED),
    (Status.RUNNING, Status.UNREACHABLE),
    (Status.RUNNING, Status.SKIPPED),
    (Status.APPLIED, Status.ROLLED_BACK),
}


def test_the_table_of_moves_is_this_one() -> None:
    assert MOVES_ALLOWED == {(before, after) for before, afters in MOVES.items() for after in afters}


FORBIDDEN = sorted(set(itertools.product(Status, Status)) - MOVES_ALLOWED)


@pytest.mark.parametrize(("before", "after"), FORBIDDEN, ids=[f"{a} to {b}" for a, b in FORBIDDEN])
def test_an_illegal_move_raises_with_its_story(before: Status, after: Status) -> None:
    made = two_boots()
    machine = Machine(made)
    step = made.steps[0]
    machine.status[step.id] = before
    with pytest.raises(IllegalMove) as caught:
        machine.ended(step.id, after)
    assert f"step c/a/stage/n1/create of plan {made.id}: {before} -> {after}" == str(caught.value)


def test_it_begins_with_what_requires_nothing() -> None:
    machine = Machine(two_boots())
    expected = ["c/a/stage/n1/create", "c/a/stage/n2/create", "c/b/stage/n4/create"]
    assert expected == ids(machine.begin())
    assert expected == ids(machine.waiting_for)


def test_a_step_runs_when_the_last_of_its_requirements_is_done() -> None:
    machine = Machine(two_boots())
    machine.begin()
    assert [] == ids(machine.ended("c/a/stage/n1/create", Status.APPLIED))
    assert ["c/a/boot/n2/start"] == ids(machine.ended("c/a/stage/n2/create", Status.NOOP))
    assert ["c/a/boot/n2/ready"] == ids(machine.ended("c/a/boot/n2/start", Status.APPLIED))
    assert ["c/a/boot/n1/start"] == ids(machine.ended("c/a/boot/n2/ready", Status.APPLIED))


def test_all_goes_well() -> None:
    machine = Machine(two_boots())
    ran = run(machine)
    assert sorted(ids(machine.plan.steps)) == sorted(ran)
    assert machine.is_done
    assert {Status.APPLIED} == set(machine.status.values())


@pytest.mark.parametrize("bad", sorted(BAD))
def test_a_stage_that_ends_badly_skips_what_needs_it_of_that_gang_only(bad: Status) -> None:
    machine = Machine(two_boots())
    run(machine, {"c/a/stage/n2/create": bad})
    of_a = {step.id: str(machine.status[step.id]) for step in machine.plan.steps if step.gang == "c/a"}
    expected = dict.fromkeys(of_a, "skipped") | {"c/a/stage/n1/create": "applied", "c/a/stage/n2/create": str(bad)}
    assert expected == of_a
    assert {Status.APPLIED} == {machine.status[step.id] for step in machine.plan.steps if step.gang == "c/b"}
    assert machine.is_done


def test_a_stage_that_fails_rolls_nothing_back_because_nothing_was_cut() -> None:
    machine = Machine(two_boots())
    assert "rollback" not in " ".join(run(machine, {"c/a/stage/n1/create": Status.FAILED}))
    assert not machine.is_back("c/a")


@pytest.mark.parametrize(
    "failing",
    [
        "c/a/boot/n2/start",
        "c/a/boot/n2/ready",
        "c/a/boot/n1/start",
        "c/a/verify/verify",
        "c/a/confirm/n1/confirm",
        "c/a/confirm/n2/confirm",
    ],
)
def test_a_gang_that_fails_between_cut_and_confirm_is_stopped_whole_the_head_first(failing: str) -> None:
    machine = Machine(two_boots())
    ran = run(machine, {failing: Status.FAILED})
    assert ["c/a/rollback/n1/stop", "c/a/rollback/n2/stop"] == [key for key in ran if key.startswith("c/a/rollback")]
    assert machine.is_back("c/a")
    assert "c/b/confirm/n4/confirm" in ran
    assert machine.is_done


def test_what_was_applied_from_the_cut_on_is_told_as_rolled_back() -> None:
    machine = Machine(two_boots())
    run(machine, {"c/a/verify/verify": Status.FAILED})
    assert {
        "c/a/stage/n1/create": "applied",
        "c/a/stage/n2/create": "applied",
        "c/a/boot/n2/start": "rolled_back",
        "c/a/boot/n2/ready": "rolled_back",
        "c/a/boot/n1/start": "rolled_back",
        "c/a/verify/verify": "failed",
        "c/a/confirm/n1/confirm": "skipped",
        "c/a/confirm/n2/confirm": "skipped",
        "c/a/rollback/n1/stop": "applied",
        "c/a/rollback/n2/stop": "applied",
    } == {key: str(status) for key, status in machine.status.items() if key.startswith("c/a/")}


def test_a_step_of_the_way_back_that_fails_leaves_the_gang_where_it_is() -> None:
    machine = Machine(two_boots())
    run(machine, {"c/a/verify/verify": Status.FAILED, "c/a/rollback/n1/stop": Status.UNREACHABLE})
    assert not machine.is_back("c/a")
    assert Status.APPLIED is machine.status["c/a/boot/n1/start"]
    assert machine.is_done


def three_starts() -> Machine:
    """A gang whose three ranks are being started at once."""
    machine = Machine(plan(desired(TRIO), world(nodes=TRIO.nodes)))
    for step in machine.begin():
        machine.ended(step.id, Status.APPLIED)
    assert 3 == len(machine.waiting_for)
    return machine


def test_the_way_back_waits_for_starts_under_way_lest_it_finds_nothing_to_stop() -> None:
    machine = three_starts()
    assert [] == ids(machine.ended("c/t/boot/n2/start", Status.FAILED))
    assert [] == ids(machine.ended("c/t/boot/n3/start", Status.APPLIED))
    assert not machine.is_done
    expected = ["c/t/rollback/n3/stop", "c/t/rollback/n2/stop", "c/t/rollback/n1/stop"]
    assert sorted(expected) == sorted(ids(machine.ended("c/t/boot/n1/start", Status.APPLIED)))


def test_two_ranks_that_fail_roll_back_once() -> None:
    machine = three_starts()
    machine.ended("c/t/boot/n1/start", Status.FAILED)
    machine.ended("c/t/boot/n2/start", Status.UNREACHABLE)
    stops = machine.ended("c/t/boot/n3/start", Status.FAILED)
    assert 3 == len(stops)
    assert [] == [step for stop in stops for step in machine.ended(stop.id, Status.APPLIED)]
    assert machine.is_done


def test_a_rank_that_is_being_watched_is_called_off_before_the_way_back_begins() -> None:
    gang_of = gang("w", ("n1", "n2", "n3"), boot_order=((1, 2), (0,)), ready=Ready(50052))
    machine = Machine(plan(desired(gang_of), world(nodes=gang_of.nodes)))
    for step in machine.begin():
        machine.ended(step.id, Status.APPLIED)
    for key in ("c/w/boot/n2/start", "c/w/boot/n3/start"):
        machine.ended(key, Status.APPLIED)
    assert ["c/w/boot/n2/ready", "c/w/boot/n3/ready"] == ids(machine.waiting_for)
    assert () == machine.overtaken
    assert () == machine.ended("c/w/boot/n2/ready", Status.FAILED)
    assert ["c/w/boot/n3/ready"] == ids(machine.overtaken)
    assert 3 == len(machine.ended("c/w/boot/n3/ready", Status.SKIPPED))
    assert () == machine.overtaken


OLD_PAIR = gang("a", ("n1", "n2"), "old", boot_order=((1,), (0,)), ready=Ready(50052))


def test_what_ran_before_comes_back_in_its_own_order_behind_its_own_gate() -> None:
    machine = Machine(plan(desired(PAIR), world(OLD_PAIR)))
    ran = run(machine, {"c/a/verify/verify": Status.FAILED})
    assert [
        "c/a/rollback/n1/stop",
        "c/a/rollback/n2/stop",
        "c/a/rollback/n2/start",
        "c/a/rollback/n2/ready",
        "c/a/rollback/n1/start",
        "c/a/rollback/verify",
        "c/a/rollback/n1/confirm",
        "c/a/rollback/n2/confirm",
    ] == [key for key in ran if "rollback" in key]
    assert machine.is_back("c/a")
    came = machine.plan.rollbacks[0].returns[0]
    assert (OLD_PAIR.address, OLD_PAIR.gate, OLD_PAIR.boot_order) == (came.address, came.gate, came.boot_order)


def test_two_lanes_that_take_the_place_of_a_third_are_proved_or_go_back_together() -> None:
    whole = gang("whole", ("n1", "n2"))
    left, right = gang("left", ("n1",)), gang("right", ("n2",))
    machine = Machine(plan(desired(left, right), world(whole)))
    ran = run(machine, {"c/right/verify/verify": Status.FAILED})
    assert not [key for key in ran if "/confirm/" in key and "rollback" not in key]
    assert machine.is_back("c/left")
    assert machine.is_back("c/right")
    assert {"c/whole/rollback/n1/start", "c/whole/rollback/n2/start", "c/whole/rollback/verify"} < set(ran)
    assert Status.ROLLED_BACK is machine.status["c/left/verify/verify"]


def test_a_lane_that_waits_for_the_place_of_one_that_came_back_is_skipped() -> None:
    old, new, beside = (
        gang(lane, ("n1",), words, shares=True) for lane, words in (("a", "old"), ("a", "new"), ("s", "s"))
    )
    machine = Machine(plan(desired(new, beside), world(old)))
    todo = [step for step in machine.begin() if step.gang == "c/a"]
    while todo:
        step = todo.pop(0)
        todo += machine.ended(step.id, Status.FAILED if step.phase is Phase.BOOT else Status.APPLIED)
    assert machine.is_back("c/a")
    machine.ended("c/s/stage/n1/create", Status.APPLIED)
    assert Status.SKIPPED is machine.status["c/s/boot/n1/start"]
    assert machine.is_done


def test_a_stop_that_fails_brings_back_what_was_stopped_by_then() -> None:
    machine = Machine(plan(desired(PAIR), world(OLD_PAIR)))
    ran = run(machine, {"c/a/cut/n2/stop/fleet-a-r1-v1": Status.FAILED})
    assert "c/a/rollback/n1/start" in ran
    assert machine.is_back("c/a")


def test_a_cut_that_changed_nothing_needs_no_way_back() -> None:
    machine = Machine(plan(desired(OTHER), world(gang("b", ("n4",), "old"))))
    assert "rollback" not in " ".join(run(machine, {"c/b/cut/n4/stop/fleet-b-r0-v1": Status.STALE}))


def test_an_interrupt_skips_what_waits_and_starts_nothing_new() -> None:
    machine = Machine(two_boots())
    began = machine.begin()
    machine.interrupt()
    assert len(machine.plan.steps) - len(began) == len(machine.with_status(Status.SKIPPED))
    assert began == machine.waiting_for
    assert [] == [step for item in began for step in machine.ended(item.id, Status.APPLIED)]
    assert machine.is_done


def test_after_an_interrupt_nothing_is_rolled_back_looking_settles_it_later() -> None:
    machine = three_starts()
    machine.ended("c/t/boot/n1/start", Status.FAILED)
    machine.interrupt()
    assert () == machine.ended("c/t/boot/n2/start", Status.FAILED)
    assert () == machine.ended("c/t/boot/n3/start", Status.SKIPPED)
    assert machine.is_done


def test_a_plan_without_steps_is_done_at_once() -> None:
    machine = Machine(plan(desired(OTHER), world(OTHER)))
    assert () == machine.begin()
    assert machine.is_done


ENDS = sorted(GOOD | BAD)


@settings(max_examples=80, deadline=None)
@given(worlds(), st.integers(0, 2**16))
def test_however_steps_end_every_step_ends_and_nothing_runs_before_its_requirements(world_of: World, seed: int) -> None:
    source = random.Random(seed)
    machine = Machine(plan(world_of.desired, world_of.observed, allow_empty=True))
    todo: list[Step] = list(machine.begin())
    started: set[str] = set()
    while todo:
        step = todo.pop(source.randrange(len(todo)))
        group = machine.group(step.gang)
        assert all(machine.status[key] in GOOD for key in step.requires)
        assert not (step.phase is Phase.ROLLBACK and any(_goes_forward(item, group) for item in todo))
        assert step.id not in started
        started.add(step.id)
        todo += machine.ended(step.id, source.choice((*sorted(GOOD), *sorted(GOOD), *ENDS)))
    assert machine.is_done
    for way in machine.plan.rollbacks:
        turned = [step for step in machine.plan.steps if step.gang in way.gangs and _turns(machine, step)]
        assert bool(turned) or not machine.way_back(way.gangs[0])
        applied = [step for step in machine.with_status(Status.APPLIED) if step.gang in way.gangs]
        assert not (machine.is_back(way.gangs[0]) and any(step.phase is Phase.BOOT for step in applied))


def _goes_forward(step: Step, group: tuple[str, ...]) -> bool:
    return step.gang in group and step.phase is not Phase.ROLLBACK


def _turns(machine: Machine, step: Step) -> bool:
    return machine.status[step.id] in BAD and step.phase in TURNING_PHASES
