"""Waiting for the first of several things, and work that is broken off when somebody wants to stop."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

LONGEST_S = 600.0
"""Between two tries of a remote that does not answer, or of a record that cannot be written, unless the interval is
longer.
"""


async def first_of(seconds: float, *events: asyncio.Event) -> None:
    """Return when one of the events is set, at the latest after so many seconds."""
    waits = [asyncio.ensure_future(event.wait()) for event in events]
    try:
        await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for item in waits:
            item.cancel()


async def broken_off(work: Coroutine[Any, Any, T], stop: asyncio.Event, *, unless: Callable[[], bool]) -> T | None:
    """What the work returns; None when it was cancelled since `stop` was set. Not cancelled when `unless` says so."""
    task, stopping = asyncio.ensure_future(work), asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait([task, stopping], return_when=asyncio.FIRST_COMPLETED)
        if task.done() or unless():
            return await task
        task.cancel()
        await asyncio.wait([task])
        return None if task.cancelled() else task.result()
    finally:
        stopping.cancel()
        task.cancel()


def growing_s(interval_s: float, failures: int) -> float:
    """How long to rest after so many failures in a row: the interval, and from the second one on twice as long."""
    return min(interval_s * 2.0 ** min(max(failures - 1, 0), 16), max(LONGEST_S, interval_s))
