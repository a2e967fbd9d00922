"""Blocking calls on daemon threads.

Not `asyncio.to_thread`: its executor is joined when the process ends, so one silent node would hold up the exit. A
daemon thread that nobody waits for any more just goes.
"""

import asyncio
import contextlib
import threading
from collections.abc import Callable
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
