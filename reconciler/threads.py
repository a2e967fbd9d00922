"""Blocking calls on daemon threads.

Not `asyncio.to_thread`: its executor is joined when the process ends, so one silent node would hold up the exit. A
daemon thread that nobody waits for any more just goes.
"""

import asyncio
import contextlib
import threading
from collections.abc import AsyncGenerator, Callable, Iterator
from functools import partial
from typing import Any, TypeVar

T = TypeVar("T")


async def in_thread(call: Callable[[], T]) -> T:
    """What `call` returns or raises. Cancelling stops the waiting, not the thread: end what it blocks on as well."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def settle(action: Callable[[Any], None], value: object) -> None:
        if not future.done():
            action(value)

    def run() -> None:
        try:
            done: tuple[Callable[[Any], None], object] = (future.set_result, call())
        except BaseException as error:  # noqa: BLE001 - whatever it is, it is raised where the call is awaited
            done = (future.set_exception, error)
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits
            loop.call_soon_threadsafe(settle, *done)

    threading.Thread(target=run, daemon=True, name="fleet-call").start()
    return await future


async def with_chunks(chunks: AsyncGenerator[bytes, None], work: Callable[[Iterator[bytes]], T]) -> T:
    """What `work` makes on a thread of chunks that come on this loop, one at a time. Afterwards they are ended."""
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
