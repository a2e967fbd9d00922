"""What commands share: options, loading the fleet, output, and running asynchronous work under signals."""

import contextlib
import os
import sys
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

if TYPE_CHECKING:
    import asyncio

    import specs
    from reconciler.fleet import Fleet
    from reconciler.nodes import protocols

T = TypeVar("T")

SpecFile = Annotated[
    Path,
    typer.Option("--file", "-f", envvar="FLEET_FILE", help="The spec.", show_default=True),
]
DEFAULT_SPEC = Path("fleet.yaml")

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]

Deadline = Annotated[
    float,
    typer.Option("--deadline", min=0.1, metavar="SECONDS", help="Time to read one node before it is unreachable."),
]
DEFAULT_DEADLINE_S = 10.0

Runner = Callable[[Coroutine[Any, Any, Any]], Any]


@dataclass(frozen=True)
class Wiring:
    """How commands reach nodes and run: replaced by tests and by the simulated demo."""

    connect: "Callable[[specs.Spec], protocols.Fleet] | None" = None
    run: Runner | None = None


def group(about: str) -> typer.Typer:
    """A command that has commands of its own; by itself it tells which, and ends with 1."""
    return typer.Typer(help=about, callback=_without_a_verb, invoke_without_command=True, rich_markup_mode=None)


def _without_a_verb(context: typer.Context) -> None:
    """What there is to say."""
    from reconciler.core.exits import Exit

    if context.invoked_subcommand is None:
        say(f"{context.get_help()}\n")
        raise typer.Exit(Exit.ERROR)


def load(context: typer.Context, path: Path) -> "Fleet":
    """The fleet of a spec. Raises `specs.SpecErrors`; `FileNotFoundError` when none is named and none is here."""
    from reconciler.fleet import Fleet, over_ssh

    _insist_on(path)
    wiring: Wiring = context.obj
    return Fleet.load(path, wiring.connect or over_ssh)


def inventory(path: Path) -> "specs.Spec":
    """The nodes and settings of a spec, for what works before its lanes are valid. Raises as `load` does."""
    import specs

    _insist_on(path)
    return specs.load_inventory(path)


def _insist_on(path: Path) -> None:
    if path == DEFAULT_SPEC and not path.exists():
        raise FileNotFoundError(f"there is no {path} here: name the spec with --file or the variable FLEET_FILE")


def run(context: typer.Context, work: Coroutine[Any, Any, T]) -> T:
    """Run asynchronous work to its end. A signal ends it cleanly, unless the work takes it by `stop_on_signals`."""
    import asyncio
    import gc

    from reconciler.cli.signals import taken

    gc.freeze()  # what imports have made stays: from now on only the work itself is searched for garbage
    wiring: Wiring = context.obj
    with taken() as signals:
        try:
            result: T = (wiring.run or asyncio.run)(signals.carry(work))
        except (KeyboardInterrupt, asyncio.CancelledError):
            raise typer.Abort from None
    return result


async def with_fleet(fleet: "Fleet", work: "Callable[[Fleet], Awaitable[T]]") -> T:
    """Do the work, then close the sessions."""
    async with fleet:
        return await work(fleet)


def say(text: str) -> None:
    """Print text as it is."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        mute()  # else what is left unwritten is tried again at the exit, whose code is then another
        raise OSError(error.errno, error.strerror, "standard output") from error


def say_json(value: object) -> None:
    """Print a value as JSON, every field in place."""
    import json

    from reconciler.core.canonical import jsonable

    say(json.dumps(jsonable(value), indent=2, ensure_ascii=False) + "\n")


def mute() -> None:
    """Write standard output to nowhere from now on: its reader is gone."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def write_whole(path: Path, text: str, mode: int | None = None) -> None:
    """Write a file whole or not at all: whoever reads it meanwhile sees the old one. `mode`: default: by the umask."""
    is_plain = not path.is_symlink() and (path.is_file() or not path.exists())  # not /dev/stdout, a pipe
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        if not is_plain:
            path.write_text(text, encoding="utf-8")
            return
        fresh.write_text(text, encoding="utf-8")
        if mode is not None:
            fresh.chmod(mode)
        fresh.replace(path)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error
    finally:
        fresh.unlink(missing_ok=True)


def warn(text: str) -> None:
    """Print to standard error, so that outputs stay clean; a terminal that is gone is no error."""
    with contextlib.suppress(OSError):
        sys.stderr.write(f"fleet: {text}\n")


def stop_on_signals(say_so: str | None = "stopping: no new steps; once more to leave at once") -> "asyncio.Event":
    """An event that the first signal sets, for work that ends by itself when asked to. `say_so` is printed then."""
    from reconciler.cli.signals import stop_on_first

    return stop_on_first(lambda: warn(say_so) if say_so else None)


def commit_of(fleet: "Fleet") -> str | None:
    """The commit the spec is of: git tracks every file it is made of, and nothing tracked in its folder is edited.

    Other files may lie there, such as the state or the vault: part of it is what it was read from, and its policies.
    """
    import subprocess

    from reconciler.images.lockfile import NAME
    from reconciler.nodes.child_env import child_environment

    own = {name: value for name, value in os.environ.items() if name.startswith("GIT_") or name == "XDG_CONFIG_HOME"}
    given = {**child_environment(), **own}
    root = fleet.spec.root.resolve()

    def git(*words: str) -> str | None:
        try:
            done = subprocess.run(
                ["git", "-C", str(root), *words],
                env=given,
                capture_output=True,
                text=True,
                timeout=5,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
        return done.stdout.strip() if done.returncode == 0 else None

    if not any((folder / ".git").exists() for folder in (root, *root.parents)):
        return None
    read = [os.path.relpath(file, fleet.spec.root) for file in fleet.spec.files]
    read += [*fleet.spec.policies.files, *([NAME] if (root / NAME).exists() else [])]
    if git("ls-files", "--error-unmatch", "--", *read) is None:
        return None
    edited = git("status", "--porcelain", "--untracked-files=no", "--", ".")
    return git("rev-parse", "HEAD") if edited == "" else None
