"""The option `--events` of commands that change something, and the record that it opens."""

import contextlib
import errno
import io
import os
import select
import stat
import sys
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO

import typer

from reconciler.cli.wiring import warn

if TYPE_CHECKING:
    from reconciler.core.envelope import Told
    from reconciler.recording import Recorder

STDOUT = "-"

UNREAD_S = 2.0
"""So long a reader of a pipe may leave it full. Leases are renewed, and interrupts taken, by whom that holds up."""

_current: ContextVar["Recorder | None"] = ContextVar("recorder", default=None)


def _opened(context: typer.Context, file: str | None) -> str | None:
    """Open it before the command begins: what cannot be written to is refused before the first effect."""
    if file is not None and not context.resilient_parsing:
        context.with_resource(_recorded(file))
    return file


Events = Annotated[
    str | None,
    typer.Option(
        "--events",
        metavar="FILE",
        callback=_opened,
        help="Write what happens to this file, too, a line of JSON an event (`fleet schema events`); "
        "- is standard output, and what is for people then goes to standard error.",
    ),
]


def tell(event: "Told") -> None:
    """Write an event to the record of this command; nowhere when nobody asked for one."""
    recorder = _current.get()
    if recorder is not None:
        recorder.take(event)


def run_id() -> str | None:
    """The id that a run of this command has, where its record has begun."""
    recorder = _current.get()
    return recorder.id if recorder is not None else None


@contextlib.contextmanager
def _recorded(file: str) -> Iterator[None]:
    with _lines_to(file) as write:
        from reconciler.recording import Recorder

        before = _current.get()
        _current.set(Recorder(write, on_lost=lambda error: _say_lost(file, error)))
        try:
            yield
        finally:
            _current.set(before)


@contextlib.contextmanager
def _lines_to(file: str) -> Iterator[Callable[[str], object]]:
    """A function that writes a line at once. Raises `typer.BadParameter`."""
    if file == STDOUT:
        out = sys.stdout
        with contextlib.redirect_stdout(sys.stderr):
            yield _to_standard_output(out)
        return
    try:
        handle = _opened_at_its_end(file)
    except OSError as error:
        raise typer.BadParameter(f"{file}: {(error.strerror or str(error)).lower()}") from None
    try:
        yield lambda line: _write_whole(handle, line.encode())
    finally:
        os.close(handle)


def _to_standard_output(out: TextIO) -> Callable[[str], object]:
    try:
        handle = out.fileno()
    except io.UnsupportedOperation:
        return out.write  # no file of the system
    out.flush()
    return lambda line: _write_whole(handle, line.encode())


def _opened_at_its_end(file: str) -> int:
    """A pipe that nobody reads is refused: opening it would wait for a reader, for ever. Raises `OSError`."""
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
    try:
        handle = os.open(file, flags | os.O_NONBLOCK, 0o644)
    except OSError as error:
        if error.errno == errno.ENXIO:
            raise OSError(error.errno, "nobody reads this pipe") from None
        raise
    os.set_blocking(handle, True)
    if _is_cut_short(file):
        _write_whole(handle, b"\n")
    return handle


def _is_cut_short(file: str) -> bool:
    """Whether its last line was, by a full disk: it must not spoil the next one, too."""
    path = Path(file)
    try:
        if not path.is_file() or not path.stat().st_size:
            return False
        with path.open("rb") as written:
            written.seek(-1, os.SEEK_END)
            return written.read() != b"\n"
    except OSError:  # one that may be written and not read
        return False


def _write_whole(handle: int, line: bytes) -> None:
    """A line in one call where the system takes it whole, so that two commands can write to one file.

    To a pipe: pieces that it has room for, so that a reader who stops reading stops nobody. Raises `OSError`.
    """
    is_pipe = stat.S_ISFIFO(os.fstat(handle).st_mode)
    while line:
        if is_pipe:
            _await_room(handle)
        line = line[os.write(handle, line[: select.PIPE_BUF] if is_pipe else line) :]


def _await_room(pipe: int) -> None:
    waiting = select.poll()
    waiting.register(pipe, select.POLLOUT)
    if not waiting.poll(UNREAD_S * 1000):
        raise TimeoutError(errno.ETIMEDOUT, f"nobody has read from it for {UNREAD_S:g} s")


def _say_lost(file: str, error: OSError) -> None:
    where = "standard output" if file == STDOUT else file
    warn(f"events are not written to {where} any more ({(error.strerror or str(error)).lower()}); the command goes on")
