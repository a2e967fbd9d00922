"""The option `--events` of commands that change something, and the record that it opens."""

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import TYPE_CHECKING, Annotated

import typer

from reconciler.cli.wiring import warn

if TYPE_CHECKING:
    from reconciler.core.envelope import Told
    from reconciler.recording import Recorder

STDOUT = "-"

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
            yield lambda line: (out.write(line), out.flush())
        return
    try:
        handle = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise typer.BadParameter(f"{file}: {(error.strerror or str(error)).lower()}") from None
    try:
        yield lambda line: _write_whole(handle, line.encode())
    finally:
        os.close(handle)


def _write_whole(handle: int, line: bytes) -> None:
    """A line in one call where the system takes it whole, so that two commands can write to one file."""
    while line:
        line = line[os.write(handle, line) :]


def _say_lost(file: str, error: OSError) -> None:
    where = "standard output" if file == STDOUT else file
    warn(f"events are not written to {where} any more ({(error.strerror or str(error)).lower()}); the command goes on")
