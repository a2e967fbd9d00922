"""Signals ask a command to stop; an explicit second one ends it at once; and it ends in time, whatever hangs."""

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable

import pytest

from reconciler.cli import signals
from reconciler.cli.wiring import stop_on_signals

STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Left(list[str]):
    """What `leave` was told, instead of leaving."""

    def __call__(self, told: str) -> None:
        self.append(told)


@pytest.fixture
def left(monkeypatch: pytest.MonkeyPatch) -> Left:
    told = Left()
    monkeypatch.setattr(signals, "leave", told)
    return told


async def send(*numbers: signal.Signals) -> None:
    for number in numbers:
        os.kill(os.getpid(), number)
        await asyncio.sleep(0.05)


def after(*numbers: signal.Signals) -> bool:
    """Whether work that takes signals by itself was asked to stop."""

    async def work() -> bool:
        stop = stop_on_signals(None)
        await send(*numbers)
        return stop.is_set()

    with signals.taken() as taken:
        return asyncio.run(taken.carry(work()))


@pytest.mark.parametrize("number", STOPPING)
def test_the_first_signal_asks_to_stop(number: signal.Signals, left: Left) -> None:
    assert after(number)
    assert [] == left


@pytest.mark.parametrize("number", STOPPING)
def test_work_that_takes_no_signals_is_cancelled_and_may_tidy_up(number: signal.Signals) -> None:
    tidied = []

    async def work() -> None:
        try:
            await send(number)
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0)
            tidied.append(number)

    with signals.taken() as taken, pytest.raises(asyncio.CancelledError):
        asyncio.run(taken.carry(work()))
    assert [number] == tidied


def test_a_terminal_that_goes_away_twice_does_not_end_the_run_at_once(left: Left) -> None:
    assert after(signal.SIGHUP, signal.SIGHUP)
    assert [] == left


@pytest.mark.parametrize("second", [signal.SIGINT, signal.SIGTERM])
def test_the_second_interrupt_ends_the_process_at_once(second: signal.Signals, left: Left) -> None:
    after(signal.SIGINT, second)
    assert ["left at once"] == left


def test_work_that_does_not_heed_the_request_is_cancelled(left: Left, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signals, "CANCEL_S", 0.1)

    async def work() -> None:
        stop_on_signals(None)
        await send(signal.SIGINT)
        await asyncio.sleep(60)

    with signals.taken() as taken, pytest.raises(asyncio.CancelledError):
        asyncio.run(taken.carry(work()))
    assert [] == left


def test_a_thread_that_hangs_under_the_loop_holds_nothing_up(left: Left, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a full pipe, or a disk that does not answer: neither the loop nor a handler of Python would run."""
    monkeypatch.setattr(signals, "CANCEL_S", 0.1)
    monkeypatch.setattr(signals, "LEAVE_S", 0.2)

    async def work() -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        until_s = time.monotonic() + 5
        while not left and time.monotonic() < until_s:
            time.sleep(0.01)

    with signals.taken() as taken, pytest.raises(asyncio.CancelledError):
        asyncio.run(taken.carry(still(work)))
    assert ["interrupted; what hung was left behind, and lapses by itself"] == left


async def still(work: Callable[[], object]) -> None:
    await work()  # type: ignore[misc]
    await asyncio.sleep(1)


def test_whatever_was_set_before_is_set_again_afterwards() -> None:
    before = [signal.getsignal(number) for number in STOPPING]
    with signals.taken():
        assert signal.default_int_handler is not signal.getsignal(signal.SIGINT)
    assert before == [signal.getsignal(number) for number in STOPPING]


def test_a_hangup_that_the_caller_ignores_stays_ignored(left: Left) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert not after(signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)


def test_leaving_ends_what_must_not_outlive_the_process() -> None:
    script = """
        import atexit
        from reconciler.cli.interrupts import leave
        atexit.register(print, "tidied", flush=True)
        leave("left at once")
        print("still here")
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=False)
    assert (130, "tidied\n", "fleet: left at once\n") == (done.returncode, done.stdout, done.stderr)


def test_an_exit_that_hangs_is_not_waited_for() -> None:
    script = """
        import atexit, threading
        from reconciler.cli.interrupts import leave
        atexit.register(threading.Event().wait)
        leave("left at once")
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], timeout=20, capture_output=True, check=False)
    assert 130 == done.returncode


def test_a_signal_that_means_something_else_does_not_stop_the_work(left: Left) -> None:
    looked: list[str] = []

    async def work() -> bool:
        stop = stop_on_signals(None)
        signals.on_signal(signal.SIGHUP, lambda: looked.append("now"))
        await send(signal.SIGHUP, signal.SIGHUP)
        return stop.is_set()

    with signals.taken() as taken:
        assert not asyncio.run(taken.carry(work()))
    assert ["now", "now"] == looked
    assert [] == left
