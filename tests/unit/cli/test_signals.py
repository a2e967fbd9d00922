"""Signals ask a run to stop; only an explicit second one ends it at once."""

import asyncio
import os
import signal

import pytest

from reconciler.cli.wiring import stop_on_signals


def after(*numbers: signal.Signals) -> bool:
    """Whether a run was asked to stop after this process got the signals."""

    async def work() -> bool:
        stop = stop_on_signals(None)
        for number in numbers:
            os.kill(os.getpid(), number)
            await asyncio.sleep(0.01)
        return stop.is_set()

    return asyncio.run(work())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_first_signal_asks_to_stop(number: signal.Signals) -> None:
    assert after(number)


def test_a_terminal_that_goes_away_twice_does_not_end_the_run_at_once() -> None:
    assert after(signal.SIGHUP, signal.SIGHUP)


def test_the_second_interrupt_ends_the_process_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    codes: list[int] = []
    monkeypatch.setattr(os, "_exit", codes.append)
    after(signal.SIGINT, signal.SIGINT)
    assert [130] == codes
