"""How far pulls are, in figures: each, all together, and as plain lines."""

from reconciler.core.events import RunStarted, StepEnded, StepProgress, StepStarted
from reconciler.core.machine import Status
from reconciler.core.plan import Op, Plan, Step
from reconciler.views.pull_meter import Meter, PullLines, Pulls
from tests.unit.core.build import desired, facts, gang, layer, observed, of_op, plan, source

GIB = 2**30
LANE = gang("pair", ("n1", "n2"))


def made() -> tuple[Plan, Step, Step]:
    nodes = (facts("n1", images=()), facts("n2", images=()))
    found = plan(desired(LANE), observed(*nodes, sources=[source("a", layer("x", 10 * GIB))]))
    first, second = of_op(found, Op.PULL)
    return found, first, second


def test_a_meter_says_bytes_rate_and_what_is_left() -> None:
    assert "3.0 GiB of 10.0 GiB, 100.0 MiB/s, 1m12s left" == str(Meter(3 * GIB, 10 * GIB, 100 * 2**20))
    assert "3.0 GiB" == str(Meter(3 * GIB, None, None))
    assert "0 B of 10.0 GiB" == str(Meter(0, 10 * GIB, None))
    assert "10.0 GiB of 10.0 GiB, 1.0 MiB/s" == str(Meter(10 * GIB, 10 * GIB, 2**20))


def test_the_rate_is_that_of_the_last_seconds() -> None:
    _, pull, _ = made()
    pulls = Pulls()
    pulls.take(StepStarted(pull), 100.0)
    pulls.take(StepProgress(pull, "", 5 * GIB, 10 * GIB), 110.0)
    assert 0.5 * GIB == pulls.of(pull).bytes_per_s
    for second in range(111, 161):
        pulls.take(StepProgress(pull, "", 5 * GIB + (second - 110) * 2**20, 10 * GIB), float(second))
    assert 2**20 == pulls.of(pull).bytes_per_s


def test_a_pull_that_begins_anew_has_no_rate_of_before() -> None:
    _, pull, _ = made()
    pulls = Pulls()
    pulls.take(StepStarted(pull), 0.0)
    pulls.take(StepProgress(pull, "", 5 * GIB, 10 * GIB), 10.0)
    pulls.take(StepProgress(pull, "", GIB, 10 * GIB), 11.0)
    assert Meter(GIB, 10 * GIB, None) == pulls.of(pull)


def test_the_total_counts_every_pull_of_the_plan_by_its_estimate() -> None:
    found, first, second = made()
    pulls = Pulls()
    pulls.take(RunStarted("r", found), 0.0)
    assert (2, Meter(0, 20 * GIB, None)) == (pulls.count, pulls.total())
    pulls.take(StepStarted(first), 0.0)
    pulls.take(StepProgress(first, "", 4 * GIB, 8 * GIB), 10.0)
    assert (4 * GIB, 18 * GIB) == (pulls.total().done_bytes, pulls.total().total_bytes)
    pulls.take(StepEnded(first, Status.APPLIED, "", 12.0), 12.0)
    pulls.take(StepEnded(second, Status.NOOP, "", 0.0), 12.0)
    assert (4 * GIB, 4 * GIB) == (pulls.total().done_bytes, pulls.total().total_bytes)


def test_a_pull_of_unknown_size_makes_the_total_unknown() -> None:
    seen = observed(facts("n1", images=()), facts("n2", images=()))
    pulls = Pulls()
    pulls.take(RunStarted("r", plan(desired(LANE), seen)), 0.0)
    assert pulls.total().total_bytes is None


def lines(*news: tuple[float, int, int | None]) -> list[str]:
    """What is said of a pull that started at second 0."""
    _, pull, _ = made()
    told = PullLines()
    said = list(told.lines(StepStarted(pull), 0.0))
    for now_s, done, total in news:
        said += told.lines(StepProgress(pull, "downloading", done, total), now_s)
    return said


def test_plain_lines_come_when_time_has_passed_and_a_part_has_come() -> None:
    quick = [(second / 10, second * GIB // 10, 10 * GIB) for second in range(100)]
    assert [] == lines(*quick)
    slow = [(float(second), second * GIB // 100, 10 * GIB) for second in range(0, 1001, 5)]
    assert 10 == len(lines(*slow))
    assert [
        "  ... pulling ghcr.io/owner/engine on n1: 2.0 GiB of 10.0 GiB, 204.8 MiB/s, 40s left, downloading"
    ] == lines((10.0, 2 * GIB, 10 * GIB), (12.0, 9 * GIB, 10 * GIB))


def test_a_pull_of_unknown_size_is_told_of_by_time_alone() -> None:
    found, _, _ = made()
    pull = of_op(plan(desired(LANE), observed(facts("n1", images=()), facts("n2", images=()))), Op.PULL)[0]
    told = PullLines()
    said = [line for second in range(31) for line in told.lines(StepProgress(pull, "", second, None), float(second))]
    assert 3 == len(said)
    assert [] == list(told.lines(RunStarted("r", found), 40.0))
