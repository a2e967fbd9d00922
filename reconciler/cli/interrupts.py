"""What a signal does while no asynchronous work takes it: at the start, while a spec is loaded, in short commands.

Every start of the command line needs this, so nothing heavy is imported. See `reconciler.cli.signals` for the rest.
"""

import atexit
import contextlib
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

TIDYING_S = 0.3
"""The time that files and children get to be removed when the process leaves at once."""

INTERRUPTED = 130


class StoppedError(BaseException):
    """A signal came. Not a `KeyboardInterrupt`, which libraries turn into exits of their own, without a word."""


@contextmanager
def raised() -> Iterator[None]:
    """In the block the first signal raises `StoppedError`, and another one ends the process at once.

    Not on the main thread: none come, and the caller's own handling stays.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, _raise) for number in NUMBERS if is_heeded(number)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _raise(number: int, frame: object) -> None:
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, _leave)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # a terminal that goes away may send it more than once
    raise StoppedError


def _leave(number: int, frame: object) -> None:
    leave("left at once")


def is_heeded(number: signal.Signals) -> bool:
    """`nohup` means it: a terminal that goes away is nothing to such a command."""
    return number is not signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN


def leave(told: str = "", code: int = INTERRUPTED) -> None:
    """End the process now: what must not outlive it first, if that takes no time. Says what it is `told`."""
    tidying = threading.Thread(target=atexit._run_exitfuncs, daemon=True)  # noqa: SLF001 - what `os._exit` leaves out
    tidying.start()
    tidying.join(TIDYING_S)
    with contextlib.suppress(OSError, ValueError):
        os.write(sys.stderr.fileno(), f"fleet: {told}\n".encode() if told else b"")
    os._exit(code)
