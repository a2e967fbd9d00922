"""The entry point: runs the app and turns every kind of failure into a message and an exit code."""

import contextlib
import gc
import io
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from reconciler.cli.interrupts import StoppedError, leave, raised
from reconciler.core.exits import Exit

if TYPE_CHECKING:
    from typer import TyperException

    from reconciler.cli.wiring import Wiring

OBJECTS_UNCOLLECTED = 100_000
"""Imports make many objects and no garbage: collecting among them takes a tenth of a short command's time."""


def main(args: Sequence[str] | None = None, wiring: "Wiring | None" = None) -> None:
    """Run one command and exit with its code. `args` default to the process's own."""
    with raised():
        try:
            _run_and_exit(args, wiring)
        except StoppedError:
            leave("interrupted")


def _run_and_exit(args: Sequence[str] | None, wiring: "Wiring | None") -> None:
    gc.set_threshold(OBJECTS_UNCOLLECTED)
    _open_what_is_closed()
    _print_whatever_the_locale()
    code = run(sys.argv[1:] if args is None else args, wiring)
    if code == Exit.INTERRUPTED:
        _leave()
    gc.freeze()  # the interpreter searches everything for garbage before it ends: the memory is given back anyway
    sys.exit(code)


def _leave() -> None:
    """Without the joins of an ordinary exit: a thread that hangs would keep a process that was told to stop."""
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
    leave()


def run(args: Sequence[str], wiring: "Wiring | None" = None) -> int:
    """Run one command; its exit code."""
    try:
        return _called(args, wiring)
    except StoppedError:
        _say("interrupted")
        return Exit.INTERRUPTED


def _called(args: Sequence[str], wiring: "Wiring | None") -> int:
    """The imports are part of it: until they are done, a signal comes to nothing but them."""
    import typer

    from reconciler.cli.app import app
    from reconciler.cli.wiring import Wiring, mute

    try:
        code = app(args=list(args) or ["--help"], prog_name="fleet", standalone_mode=False, obj=wiring or Wiring())
    except (StoppedError, KeyboardInterrupt, typer.Abort):  # before the known errors, whose imports may be what hangs
        raise StoppedError from None
    except typer.TyperException as error:
        return _say(_misused(error))
    except BrokenPipeError:
        mute()  # so that the exit flush is quiet, too
        return Exit.ERROR
    except _known_errors() as error:
        return _say(_told(error))
    return int(code or 0) if args else Exit.ERROR


def _misused(error: "TyperException") -> str:
    """What is wrong with the command line, and whose help says what is right."""
    context = getattr(error, "ctx", None)
    command = context.command_path if context else "fleet"
    said = error.format_message().rstrip(".").replace("Value error, ", "")  # a word of a library of the library
    return f"{said}\nTry `{command} --help`."


def _open_what_is_closed() -> None:
    """Standard streams that the caller closed lead nowhere; else the next files opened would take their numbers."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: PTH123, SIM115 - open for the process


def _print_whatever_the_locale() -> None:
    """What an ASCII terminal or pipe cannot show becomes a question mark: no run dies of a dot in its output."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")


def _known_errors() -> tuple[type[Exception], ...]:
    """The failures that are somebody's to mend, found only when one happened: these imports are not free."""
    import specs
    import state
    from reconciler.core.lock import LockError
    from reconciler.gitops.git import GitError
    from reconciler.gitops.workplace import WorkError
    from reconciler.images.errors import SupplyError
    from reconciler.nodes.errors import NodeError
    from reconciler.notify import NotifyError
    from reconciler.rollback import RollbackError
    from reconciler.saved import SavedPlanError

    ours = (LockError, RollbackError, SavedPlanError, SupplyError, NodeError, NotifyError, GitError, WorkError)
    return specs.SpecErrors, state.StateError, *ours, OSError


def _told(error: Exception) -> str:
    hint = getattr(error, "hint", "")
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return f"{error.filename}: {error.strerror.lower()}"
    return f"{error}{f'{chr(10)}{hint}' if hint else ''}"


def _say(text: str) -> int:
    sys.stderr.write(f"fleet: {text}\n")
    return Exit.ERROR
