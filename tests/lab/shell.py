"""Programs run, waits with deadlines, and work done side by side: the lab's only way to the outside."""

import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class LabError(RuntimeError):
    """What the lab could not do, with what the failing program said."""


def run(
    argv: Sequence[str],
    *,
    timeout: float = 60,
    check: bool = True,
    stdin: str | None = None,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> "subprocess.CompletedProcess[str]":
    """Run a program to its end; a failure carries its last words."""
    try:
        done = subprocess.run(
            argv, capture_output=True, text=True, timeout=timeout, check=False, env=env, cwd=cwd, input=stdin or ""
        )
    except subprocess.TimeoutExpired as error:
        raise LabError(f"{' '.join(argv)}: no end within {timeout:g} s") from error
    except FileNotFoundError as error:
        raise LabError(f"{argv[0]}: no such program") from error
    if check and done.returncode != 0:
        raise LabError(f"{' '.join(argv)}: exit {done.returncode}\n{tail(done.stdout + done.stderr)}")
    return done


def tail(text: str, lines: int = 20) -> str:
    """The last lines of a program's output: the part that tells why."""
    return "\n".join(text.splitlines()[-lines:])


def tail_of(path: Path, lines: int = 20) -> str:
    """The last lines of a log file, or a word on its absence."""
    if not path.exists():
        return f"(no {path})"
    return tail(path.read_text(errors="replace"), lines)


def wait_until(what: str, probe: Callable[[], bool], *, seconds: float, detail: Callable[[], str] = str) -> None:
    """Poll until the probe holds; the error of a missed deadline says what was waited for."""
    deadline = time.monotonic() + seconds
    while not probe():
        if time.monotonic() > deadline:
            raise LabError(f"waited {seconds:g} s for {what}, in vain\n{detail()}".rstrip())
        time.sleep(0.05)


def side_by_side(work: Iterable[Callable[[], T]]) -> list[T]:
    """Run all pieces at once, wait for every one, then raise the first failure: nothing goes on unseen."""
    pieces = list(work)
    with ThreadPoolExecutor(max_workers=max(1, len(pieces))) as pool:
        futures = [pool.submit(piece) for piece in pieces]
    return [future.result() for future in futures]


class Progress:
    """One line per finished thing, with its seconds: what a person reads while the lab comes up."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._quiet = quiet
        self._start = time.monotonic()

    def done(self, what: str, since: float) -> None:
        if not self._quiet:
            print(f"{time.monotonic() - self._start:6.1f} s  {what} ({time.monotonic() - since:.1f} s)", flush=True)

    def say(self, what: str) -> None:
        if not self._quiet:
            print(what, flush=True)

    def step(self, what: str, work: Callable[[], T]) -> T:
        """Do the work, then say that it is done."""
        since = time.monotonic()
        result = work()
        self.done(what, since)
        return result
