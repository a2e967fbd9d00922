"""What is expected of a plan, from what was recorded: never a guess, never an influence on the plan."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from reconciler.core.durations import (
    BOOT,
    Duration,
    Ended,
    Expected,
    expected,
    known,
    measured,
    node_class,
    node_classes,
    subject_of,
)
from reconciler.core.estimates import NOTHING, History, estimates
from reconciler.core.machine import Status
from reconciler.core.observed import Gpu
from reconciler.core.plan import Op, Plan
from tests.unit.core.build import GIB, desired, facts, gang, observed, of_op, plan, unknown, world

OLD = gang("old", ("n1", "n2"), cluster="d")
LANE = gang("a", ("n1", "n2"), memory_bytes=GIB)
SEEN = world(OLD)
MADE = plan(desired(LANE), SEEN)
CLASSES = node_classes(SEEN)
TIMES = st.lists(st.floats(0, 1e6), max_size=9)


def boot(seconds: float, of: str = "c/a") -> Duration:
    subject = subject_of(BOOT, LANE, "n1", CLASSES)
    assert subject is not None
    return Duration(BOOT, of, "", subject.image, subject.model, subject.node_class, seconds)


def run_of(made: Plan, status: Status = Status.APPLIED, each_s: float = 2.0) -> list[Ended]:
    """Every step one after the other."""
    return [Ended(step, status, number * each_s, (number + 1) * each_s) for number, step in enumerate(made.steps)]


@given(TIMES)
def test_what_is_expected_lies_between_what_was_seen_and_nothing_seen_is_nothing_expected(times: list[float]) -> None:
    found = expected(times)
    if not times:
        assert found is None
    else:
        assert found is not None
        assert 0 <= found.low_s <= found.seconds <= found.high_s
        assert (min(times), max(times), len(times)) == (found.low_s, found.high_s, found.count)


@given(TIMES, TIMES)
def test_estimates_are_never_negative_and_what_is_unknown_stays_so(boots: list[float], others: list[float]) -> None:
    took = [*map(boot, boots), *(replace(boot(item), image="sha256:other") for item in others)]
    found = estimates(MADE, CLASSES, took)
    assert bool(boots) == ("c/a" in found.boots)
    assert all(item.seconds >= 0 for item in found.steps.values())
    [dark] = found.dark
    assert (dark.seconds is None) == (not boots)
    assert estimates(MADE, {}, took).steps == {}, "of nodes that were not read nothing is known"


def test_a_class_of_nodes_is_its_platform_gpus_and_memory_whatever_the_megabytes() -> None:
    one = facts("n1", gpus=(Gpu("GB10"),), memory_total_bytes=121 * GIB)
    other = facts("n2", gpus=(Gpu("GB10"),), memory_total_bytes=119 * GIB)
    assert "linux/arm64, 1 x GB10, 120 GiB" == node_class(one) == node_class(other)
    bare = replace(one, gpus=(), memory_total_bytes=None)
    assert "linux/arm64, no GPU, memory unknown" == node_class(bare)
    assert {"n1"} == node_classes(observed(one, unknown("n2"))).keys()


def test_a_run_tells_its_boot_from_the_first_start_to_the_passed_gate() -> None:
    ended = run_of(MADE)
    [found] = [item for item in measured(MADE, ended, CLASSES) if item.kind == BOOT]
    starts = [item.began_s for item in ended if item.step.op is Op.START]
    [gate] = [item.ended_s for item in ended if item.step.op is Op.VERIFY]
    assert ("c/a", gate - min(starts)) == (found.gang, found.seconds)


def test_a_run_tells_the_phases_of_a_boot_that_was_proved_and_the_next_one_expects_them() -> None:
    phases = (("image", 2.0), ("weights", 3.0))
    ended = [replace(item, phases=phases) if item.step.op is Op.VERIFY else item for item in run_of(MADE)]
    found = [*measured(MADE, ended, CLASSES)]
    assert {"boot:image": 2.0, "boot:weights": 3.0} == {
        item.kind: item.seconds for item in found if item.kind.startswith("boot:")
    }
    assert dict(phases) == History(tuple(found)).phases(LANE, CLASSES)
    assert {} == History(tuple(found)).phases(LANE, {}), "of a node that was not read nothing is known"
    assert [BOOT, "boot:image", "boot:weights"] == [item.kind for item in known(found) if item.kind.startswith(BOOT)]


def test_what_failed_or_had_nothing_to_do_tells_nothing() -> None:
    assert [] == [*measured(MADE, run_of(MADE, Status.FAILED), CLASSES)]
    assert {"room", BOOT} == {item.kind for item in measured(MADE, run_of(MADE, Status.NOOP), CLASSES)}


def test_what_a_run_tells_is_what_the_next_plan_expects() -> None:
    found = estimates(MADE, CLASSES, [*measured(MADE, run_of(MADE), CLASSES)])
    [dark] = found.dark
    assert dark.boot is not None
    assert dark.seconds == dark.boot.seconds + 2.0 + 2.0, "a stop and a wait for memory beside each other's ranks"
    rooms = [found.steps[step.id] for step in of_op(MADE, Op.ROOM)]
    assert [Expected(2.0, 2.0, 2.0, 2)] * 2 == rooms


def test_the_lanes_own_boots_speak_before_those_of_others() -> None:
    found = estimates(MADE, CLASSES, [boot(9.0, "e/b"), boot(2.0), boot(9.0, "e/b")])
    assert Expected(2.0, 2.0, 2.0, 1) == found.boots["c/a"]
    assert 9.0 == estimates(MADE, CLASSES, [boot(9.0, "e/b")]).boots["c/a"].seconds


def test_the_table_of_what_is_known_has_a_line_for_each_subject() -> None:
    [one] = known([boot(3.0), boot(1.0, "e/b"), boot(2.0)])
    assert (("c/a", "e/b"), Expected(2.0, 1.0, 3.0, 3), 3.0) == (one.gangs, one.expected, one.last_s)
    assert () == known([])


def test_nothing_recorded_is_nothing_known() -> None:
    found = estimates(MADE, CLASSES, [])
    assert (NOTHING.steps, NOTHING.boots) == (found.steps, found.boots)
