"""A command that has to end in time, whatever hangs: a folder on a dead server, a pipe that nobody reads, a library."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from reconciler.cli.interrupts import leave
from reconciler.core.exits import Exit

GRACE_S = 5.0
"""So long after its time a command that keeps the time itself may still be at its end."""


@contextmanager
def bounded(within_s: float) -> Iterator[None]:
    """The process leaves with 4 when the block has not come to its end some seconds after its time."""

    def left() -> None:
        leave(f"no end within {within_s:g} s: something hangs that cannot be interrupted", Exit.UNREACHABLE)

    timer = threading.Timer(within_s + GRACE_S, left)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
