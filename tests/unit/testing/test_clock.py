"""Virtual time: it jumps, it keeps the order, and it says when nothing can happen any more."""

import asyncio
import random
import time

import pytest

from reconciler.testing import DeadlockError, LoopClock, VirtualTimeError, rfc3339, run_simulated


def now() -> float:
    return asyncio.get_running_loop().time()


def test_a_long_sleep_takes_no_time() -> None:
    async def main() -> float:
        await asyncio.sleep(600)
        return now()

    since = time.monotonic()
    assert run_simulated(main()) == pytest.approx(600)
    assert time.monotonic() - since < 1


def test_a_sleep_of_days_is_longer_than_the_loop_waits_at_once() -> None:
    async def main() -> float:
        await asyncio.sleep(3 * 86_400)
        return now()

    assert run_simulated(main()) == pytest.approx(3 * 86_400)


def test_sleepers_wake_in_the_order_of_their_times() -> None:
    woken: list[float] = []

    async def sleeper(seconds: float) -> None:
        await asyncio.sleep(seconds)
        woken.append(seconds)

    async def main() -> None:
        await asyncio.gather(*(sleeper(seconds) for seconds in (30, 1, 20, 0.001, 7)))

    run_simulated(main())
    assert woken == [0.001, 1, 7, 20, 30]


def test_timeouts_are_virtual_too() -> None:
    async def main() -> float:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(40):
                await asyncio.sleep(50)
        return now()

    assert run_simulated(main()) == pytest.approx(40)


def test_waiting_for_what_cannot_come_names_the_place() -> None:
    async def deep() -> None:
        await asyncio.get_running_loop().create_future()

    async def main() -> None:
        task = asyncio.create_task(deep(), name="the-waiting-one")
        await task

    with pytest.raises(DeadlockError, match=r"the-waiting-one waits in .*deep .*test_clock\.py"):
        run_simulated(main())


def test_polling_for_ever_ends() -> None:
    async def main() -> None:
        while True:
            await asyncio.sleep(1)

    with pytest.raises(VirtualTimeError, match="still running after 100 virtual seconds"):
        run_simulated(main(), limit_s=100)


def test_work_for_threads_runs_at_once_with_its_result_or_error() -> None:
    def fails() -> None:
        raise ValueError("no")

    async def main() -> int:
        with pytest.raises(ValueError, match="no"):
            await asyncio.to_thread(fails)
        return await asyncio.to_thread(max, 3, 4)

    assert run_simulated(main()) == 4


def test_an_error_of_the_program_comes_through() -> None:
    async def main() -> None:
        await asyncio.sleep(1)
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        run_simulated(main())


def test_random_is_seeded_inside_and_untouched_outside() -> None:
    async def main() -> float:
        return random.random()

    random.seed(1)
    expected = random.random()
    random.seed(1)
    assert run_simulated(main(), seed=5) == run_simulated(main(), seed=5)
    assert random.random() == expected


def test_a_clock_goes_on_in_the_next_loop_and_stands_still_between() -> None:
    clock = LoopClock()

    async def main() -> float:
        before = clock()
        await asyncio.sleep(10)
        return clock() - before

    assert run_simulated(main()) == pytest.approx(10)
    assert clock() == pytest.approx(10)
    assert run_simulated(main()) == pytest.approx(10)
    assert clock() == pytest.approx(20)


def test_timestamps_have_dockers_form() -> None:
    assert rfc3339(61.5) == "2026-01-01T00:01:01.500000Z"
