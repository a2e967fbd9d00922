"""Which of several ended ranks is blamed, and for what."""

from dataclasses import replace

from reconciler.core.ends import End, blamed, ends_of, error_of
from tests.unit.core import build

GONE = ("NCCL WARN socketProgress: Connection closed by remote peer n2<41109>",)
LATE = ("torch.distributed.DistStoreError: Timed out after 601 seconds waiting for clients. 1/2 clients joined.",)
FULL = ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.32 GiB.",)
PAIR = build.gang(nodes=("n1", "n2"))


def end(rank: int, second: int, *lines: str, code: int = 1, oom: bool = False) -> End:
    container = build.container(PAIR, rank, state="exited", exit_code=code, oom_killed=oom)
    finished = replace(container, finished_at=f"2026-03-01T11:00:{second:02d}.5Z")
    return End(rank, f"n{rank + 1}", finished, lines)


def blame(*ends: End) -> tuple[int, str] | None:
    found = blamed(ends)
    return (found[0].rank, found[1].id) if found else None


def test_the_first_that_ended_is_blamed() -> None:
    assert (1, "gpu-out-of-memory") == blame(end(1, 3, *FULL), end(0, 9, *FULL))


def test_a_rank_that_only_lost_the_other_is_not_blamed_though_it_ended_first_by_its_clock() -> None:
    assert (1, "gpu-out-of-memory") == blame(end(0, 1, *GONE), end(1, 3, *FULL))


def test_what_may_follow_from_another_rank_counts_only_where_there_is_nothing_better() -> None:
    assert (1, "gpu-out-of-memory") == blame(end(0, 1, *LATE), end(1, 3, *FULL))
    assert (0, "rendezvous-timeout") == blame(end(0, 1, *LATE), end(1, 3, *GONE))


def test_a_kill_is_a_cause_by_its_exit_code_alone() -> None:
    assert (1, "killed") == blame(end(1, 1, code=137), end(0, 2, *LATE))
    assert (1, "oom-killed") == blame(end(1, 1, code=137, oom=True), end(0, 2, *FULL))


def test_without_any_cause_nobody_is_blamed_but_an_error_in_own_words_is_told() -> None:
    ends = (end(0, 1, *GONE), end(1, 2, "RuntimeError: the flux capacitor is not charged"))
    assert blame(*ends) is None
    found = error_of(ends)
    assert found is not None
    assert (1, "RuntimeError: the flux capacitor is not charged") == (found[0].rank, found[1])


def test_only_what_ran_and_ended_counts_in_the_order_of_its_ending() -> None:
    late, early = end(0, 9).container, end(1, 2).container
    assert [1, 0] == [item.rank for item in ends_of(PAIR, (late, early))]
    created = build.container(PAIR, 0, state="created")
    assert [1] == [item.rank for item in ends_of(PAIR, (replace(created, finished_at=""), early))]
    assert () == ends_of(PAIR, (None, build.container(PAIR, 1)))


def test_colours_in_a_log_do_not_hide_the_cause() -> None:
    assert (0, "gpu-out-of-memory") == blame(end(0, 1, "\x1b[31mCUDA out\x1b[0m of memory. Tried"))
