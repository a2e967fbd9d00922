"""Which rank ended first, by clocks that disagree."""

from dataclasses import replace

from reconciler.core.ends import End
from reconciler.core.host import Clock
from reconciler.execution.clocks import in_order
from tests.unit.core import build

PAIR = build.gang(nodes=("n1", "n2"))
TRUE = Clock(0.0, 0.1)


def end(rank: int, second: int) -> End:
    container = build.container(PAIR, rank, state="exited", exit_code=1)
    return End(rank, f"n{rank + 1}", replace(container, finished_at=f"2026-03-01T11:00:{second:02d}.5Z"))


ENDS = (end(0, 3), end(1, 5))


def order(**clocks: Clock) -> list[int]:
    return [item.rank for item in in_order(ENDS, clocks)]


def test_a_clock_that_is_ahead_is_set_back() -> None:
    assert [1, 0] == order(n1=TRUE, n2=Clock(4.0, 0.1))
    assert [0, 1] == order(n1=TRUE, n2=Clock(1.0, 0.1)), "by less than lies between the two ends"
    assert [1, 0] == order(n1=Clock(-30.0, 0.1), n2=Clock(-26.0, 0.1)), "the controller's own clock may be off"


def test_what_is_not_sure_changes_no_order() -> None:
    assert [0, 1] == order()
    assert [0, 1] == order(n2=Clock(4.0, 0.1)), "the other clock is not known"
    assert [0, 1] == order(n1=Clock(0.0, 2.0), n2=Clock(4.0, 2.0)), "both were measured roughly"
