"""Blocking calls on daemon threads.

Not `asyncio.to_thread`: its executor is joined when the process ends, so one silent node would hold up the exit. A
daemon thread that nobody waits for any more just goes.
"""

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable, Iterator
from concurrent.futures import Executor, Future
from functools import partial
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class _Daemons(Executor):
    """A daemon thread for each call."""

    def submit(self, call: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> "Future[T]":
        """Start it. What the call raises, whatever it is, is raised where the future is awaited."""
        future: Future[T] = Future()
        future.set_running_or_notify_cancel()  # from here on cancelling stops the waiting only

        def run() -> None:
            try:
                result = call(*args, **kwargs)
            except BaseException as error:  # noqa: BLE001 - see above
                future.set_exception(error)
            else:
                future.set_result(result)

        threading.Thread(target=run, daemon=True, name="fleet-call").start()
        return future


_DAEMONS = _Daemons()


async def in_thread(call: Callable[[], T]) -> T:
    """What `call` returns or raises. Cancelling stops the waiting, not the thread: end what it blocks on as well.

    A loop in virtual time runs it at once (`reconciler.testing`).
    """
    return await asyncio.get_running_loop().run_in_executor(_DAEMONS, call)


def within(seconds: float, call: Callable[[], T]) -> T:
    """What `call` returns or raises, for who has no loop. Raises `TimeoutError` after `seconds`; it is left to itself.

    What raises a `TimeoutError` of its own is not told from one that took too long.
    """
    return _DAEMONS.submit(call).result(seconds)


async def with_chunks(chunks: AsyncGenerator[bytes, None], work: Callable[[Iterator[bytes]], T]) -> T:
    """What `work` makes on a thread of chunks that come on this loop, one at a time. Afterwards they are ended.

    Not for a loop in virtual time, which has no threads.
    """
    drawing = _Drawing(chunks)
    try:
        return await in_thread(partial(work, drawing.drawn(asyncio.get_running_loop())))
    finally:
        await drawing.end()


class _Drawing:
    """Chunks of a loop, drawn by a thread: none is made before it is asked for."""

    def __init__(self, chunks: AsyncGenerator[bytes, None]) -> None:
        self._chunks = chunks
        self._task: asyncio.Task[bytes | None] | None = None

    def drawn(self, loop: asyncio.AbstractEventLoop) -> Iterator[bytes]:
        """For the thread."""
        while True:
            chunk = asyncio.run_coroutine_threadsafe(self._next(), loop).result()
            if chunk is None:
                return
            yield chunk

    async def _next(self) -> bytes | None:
        self._task = asyncio.current_task()
        return await anext(self._chunks, None)  # a future cannot hold a StopAsyncIteration

    async def end(self) -> None:
        """For the loop: also in the middle, where nobody waits for the thread any more."""
        if self._task is not None and not self._task.done():
            self._task.cancel()
            await asyncio.wait([self._task])
        await self._chunks.aclose()
