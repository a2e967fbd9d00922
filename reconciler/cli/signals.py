"""SIGINT, SIGTERM and SIGHUP: the first asks a command to stop, and within five seconds it is gone, whatever hangs.

A second SIGINT or SIGTERM ends it at once. Signals are read by a thread of their own, so that neither a full pipe nor a
busy disk under the main thread delays them.
"""

import asyncio
import contextlib
import select
import signal
import socket
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any, TypeVar

from reconciler.cli.interrupts import NUMBERS, is_heeded, leave

T = TypeVar("T")

CANCEL_S = 3.5
"""So long after the first signal, work that was asked to stop is cancelled: it waits for something that hangs."""

LEAVE_S = 4.6
"""So long after the first signal the process leaves, whatever it does. Leases and forwards lapse by themselves."""


class Signals:
    """The signals of one command. `first` is what the first one does."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[Any] | None = None
        self._first: Callable[[], object] = self._cancel
        self._due: list[tuple[float, Callable[[], object]]] = []
        self._is_asked = False
        self._meant: dict[int, Callable[[], object]] = {}

    async def carry(self, work: Coroutine[Any, Any, T]) -> T:
        """The work, cancelled by the first signal unless it asks for something else."""
        self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
        _current.set(self)
        if self._is_asked:
            self._cancel()
        return await work

    def at_first(self, action: Callable[[], object]) -> None:
        """What the first signal does on the loop, instead of cancelling the work."""
        self._first = action

    def mean(self, number: int, action: Callable[[], object]) -> None:
        """What this signal does on the loop, instead of being a wish to stop."""
        self._meant[number] = action

    def listen(self, wake: socket.socket) -> None:
        """For the thread: take the numbers that come, and do what is due, until the other end is closed."""
        while True:
            rest_s = max(self._due[0][0] - time.monotonic(), 0) if self._due else None
            if not select.select([wake], [], [], rest_s)[0]:
                self._due.pop(0)[1]()
            elif came := wake.recv(64):
                for number in came:
                    self._take(number)
            else:
                return

    def _take(self, number: int) -> None:
        """A terminal that goes away sends SIGHUP, often more than once: that is never taken for "leave at once"."""
        if number in self._meant:
            self._on_loop(self._meant[number])
        elif self._is_asked:
            if number in {signal.SIGINT, signal.SIGTERM}:
                leave("left at once")
        elif number in NUMBERS:
            self._is_asked = True
            now_s = time.monotonic()
            self._due = [(now_s + CANCEL_S, partial(self._on_loop, self._cancel)), (now_s + LEAVE_S, _give_up)]
            self._on_loop(self._first)

    def _on_loop(self, action: Callable[[], object]) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: the work is done
            if self._loop is not None:
                self._loop.call_soon_threadsafe(action)

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()


_current: ContextVar[Signals | None] = ContextVar("signals", default=None)


def stop_on_first(say: Callable[[], object] = lambda: None) -> asyncio.Event:
    """An event that the first signal sets, for work that ends by itself when asked to. `say` is called then, too.

    Outside of a command that takes signals it is never set.
    """
    stop = asyncio.Event()
    signals = _current.get()

    def ask() -> None:
        stop.set()
        say()

    if signals is not None:
        signals.at_first(ask)
    return stop


def on_signal(number: int, action: Callable[[], object]) -> None:
    """Have a signal do something else than stop the command, on the loop; nothing outside of a command."""
    signals = _current.get()
    if signals is not None:
        signals.mean(number, action)


@contextmanager
def taken() -> Iterator[Signals]:
    """The block's signals. Not on the main thread: none come, and the caller's own handling stays."""
    signals = Signals()
    if threading.current_thread() is not threading.main_thread():
        yield signals
        return
    reader, writer = socket.socketpair()
    writer.setblocking(False)
    wakes = signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
    before = {number: signal.signal(number, _pass_on) for number in NUMBERS if is_heeded(number)}
    listening = threading.Thread(target=signals.listen, args=(reader,), daemon=True, name="fleet-signals")
    listening.start()
    try:
        yield signals
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(wakes)
        writer.close()
        listening.join()
        reader.close()


def _pass_on(number: int, frame: object) -> None:
    """The number is on its way to the thread already: without a handler it would not be."""


def _give_up() -> None:
    leave("interrupted; what hung was left behind, and lapses by itself")
