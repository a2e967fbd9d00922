"""Virtual time: an event loop whose clock jumps to the next timer whenever nothing is ready.

`asyncio.sleep(600)` takes no real time, and the same program takes the same course every time. Works as long as all
waiting is for timers and for other tasks of the loop; code that waits for sockets does not belong here.
"""

import asyncio
import inspect
import random
import selectors
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, TypeVar, TypeVarTuple, Unpack

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
"""The moment that is virtual second 0, for timestamps."""

LIMIT_S = 7 * 86_400.0
"""Virtual seconds after which a run is stopped: something polls for ever."""


ROUNDS = 64
"""A busy loop looks for signals and other threads only once in so many rounds: most of them have no use for it."""


class DeadlockError(RuntimeError):
    """Nothing is ready, no timer is set, and tasks still wait: they would wait for ever. Says where each of them is."""


class VirtualTimeError(RuntimeError):
    """The run went on past its limit of virtual seconds. Says where each task is."""


@lru_cache(maxsize=4096)
def rfc3339(virtual_s: float) -> str:
    """The timestamp of a virtual second, in Docker's form."""
    return (EPOCH + timedelta(seconds=virtual_s)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


class VirtualLoop(asyncio.SelectorEventLoop):
    """The event loop. Functions for threads run at once, in the loop's own thread."""

    def __init__(self, limit_s: float = LIMIT_S) -> None:
        self._virtual = _JumpingSelector(limit_s, self._whereabouts)
        super().__init__(self._virtual)

    def time(self) -> float:
        """Virtual seconds since the loop was made."""
        return self._virtual.now_s

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[Unpack[Ts]], T], *args: *Ts
    ) -> "asyncio.Future[T]":
        """Run `func` now: threads have no virtual time."""
        future: asyncio.Future[T] = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:  # noqa: BLE001 - whatever it is belongs to whoever awaits
            future.set_exception(error)
        return future

    def _whereabouts(self) -> str:
        tasks = sorted(asyncio.all_tasks(self), key=lambda task: task.get_name())
        return "\n".join(f"  {task.get_name()} waits in {_innermost(task.get_coro())}" for task in tasks)


class _JumpingSelector(selectors.SelectSelector):
    """Never sleeps: the time it was to wait is added to the clock."""

    def __init__(self, limit_s: float, whereabouts: Callable[[], str]) -> None:
        super().__init__()
        self.now_s = 0.0
        self._limit_s = limit_s
        self._whereabouts = whereabouts
        self._rounds = 0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self._rounds += 1
        if timeout == 0 and self._rounds % ROUNDS:
            return []
        ready = super().select(0)
        if ready or timeout == 0:
            return ready
        if timeout is None:
            raise DeadlockError(f"nothing can ever happen again:\n{self._whereabouts()}")
        self.now_s += timeout
        if self.now_s > self._limit_s:
            raise VirtualTimeError(f"still running after {self._limit_s:g} virtual seconds:\n{self._whereabouts()}")
        return ready


class LoopClock:
    """The time of whatever loop runs now, going on where the loop before it ended; it stands still between loops."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._offset_s = 0.0
        self._last_s = 0.0

    def __call__(self) -> float:
        """Seconds since the first reading in a loop."""
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return self._last_s
        if loop is not self._loop:
            self._loop, self._offset_s = loop, self._last_s - loop.time()
        self._last_s = loop.time() + self._offset_s
        return self._last_s


def _innermost(awaited: object) -> str:
    """The place of the await at the end of a chain of coroutines."""
    where = "?"
    while inspect.iscoroutine(awaited):
        frame = awaited.cr_frame
        if frame is not None:
            where = f"{awaited.__qualname__} ({frame.f_code.co_filename}:{frame.f_lineno})"
        awaited = awaited.cr_await
    return where


def run_simulated(main: Coroutine[Any, Any, T], seed: int = 0, limit_s: float = LIMIT_S) -> T:
    """What `main` returns, run in virtual time; `seed` also seeds `random`, for jitter in the code under test.

    Raises `DeadlockError` when `main` waits for what cannot come, and `VirtualTimeError` after `limit_s` virtual
    seconds.
    """
    before = random.getstate()
    random.seed(seed)
    try:
        with asyncio.Runner(loop_factory=lambda: VirtualLoop(limit_s)) as runner:
            return runner.run(main)
    finally:
        random.setstate(before)
