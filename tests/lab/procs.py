"""Processes the lab owns: by recorded pid and start time, or by living in a network namespace of the lab.

A pid alone proves nothing, since numbers are used again. Signals go through a pidfd that is opened first and checked
after, so that the process that was checked is the one that is hit.
"""

import functools
import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from .shell import PATH, run, tail_of, wait_until

# The shell writes its own pid, then becomes the program: the record is there before the program can fail.
RECORD_THEN_EXEC = (
    'record=$1 log=$2; shift 2; exec >>"$log" 2>&1; echo $$ >"$record.new"; mv "$record.new" "$record"; exec "$@"'
)


@dataclass(frozen=True)
class Process:
    """A process by pid and start time (clock ticks since boot): an identity that is never used again."""

    pid: int
    started: int

    @property
    def alive(self) -> bool:
        return started(self.pid) == self.started

    def signal(self, number: int = signal.SIGKILL) -> None:
        """Send a signal, unless the process is gone."""
        signal_if(self.pid, number, lambda: self.alive)


def started(pid: int) -> int | None:
    """The start time of a live process; a zombie counts as gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if fields[0] in "ZX" else int(fields[19])


def identify(pid: int) -> Process | None:
    """The process that has this pid now."""
    since = started(pid)
    return None if since is None else Process(pid, since)


def signal_if(pid: int, number: int, ours: Callable[[], bool]) -> None:
    """Signal a process only when the check holds for the very process the handle points at."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        if ours():
            signal.pidfd_send_signal(handle, number)
    except ProcessLookupError:
        return
    finally:
        os.close(handle)


def spawn(argv: Sequence[str], *, record: Path, log: Path, env: Mapping[str, str] | None = None) -> Process:
    """Start a program that outlives us; its pid and start time are recorded in a file."""
    record.unlink(missing_ok=True)
    clean = {"PATH": PATH, "LANG": "C.UTF-8", "HOME": "/root", **(env or {})}
    run(["setsid", "-f", "sh", "-c", RECORD_THEN_EXEC, "sh", str(record), str(log), *argv], env=clean, cwd=Path("/"))
    wait_until(f"the start of {argv[0]}", record.exists, seconds=10, detail=lambda: tail_of(log))
    process = identify(int(record.read_text())) or Process(int(record.read_text()), -1)
    record.write_text(f"{process.pid} {process.started}\n")
    return process


def recorded(record: Path) -> Process | None:
    """The process of a record, if it still is that process."""
    if not record.exists() or len(words := record.read_text().split()) != 2:
        return None
    process = Process(int(words[0]), int(words[1]))
    return process if process.alive else None


def end(record: Path, seconds: float = 10) -> None:
    """End a recorded process: asked first, then made to."""
    if process := recorded(record):
        process.signal(signal.SIGTERM)
        deadline = time.monotonic() + seconds / 2
        while process.alive and time.monotonic() < deadline:
            time.sleep(0.02)
        process.signal(signal.SIGKILL)
        wait_until(f"the end of process {process.pid}", lambda: not process.alive, seconds=seconds)
    record.unlink(missing_ok=True)


def inside(namespace: Path) -> list[int]:
    """The pids that live in a network namespace."""
    if not namespace.exists():
        return []
    wanted = namespace.stat()
    return [pid for pid in all_pids() if lives_in(pid, wanted)]


def all_pids() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdecimal()]


def lives_in(pid: int, namespace: os.stat_result) -> bool:
    try:
        found = Path(f"/proc/{pid}/ns/net").stat()
    except OSError:  # gone in the meantime
        return False
    return (found.st_dev, found.st_ino) == (namespace.st_dev, namespace.st_ino)


def named(pids: Sequence[int], name: str) -> list[int]:
    """Those of the pids whose program has this name."""
    return [pid for pid in pids if status(pid, "Name") == [name]]


def status(pid: int, key: str) -> list[str]:
    """A line of /proc/PID/status as words; empty when the process is gone."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return []
    return next((line.split()[1:] for line in lines if line.startswith(f"{key}:")), [])


def first_process(namespace: Path) -> int | None:
    """The node's PID 1: one PID namespace deep, number 1 in there."""
    inits = [pid for pid in inside(namespace) if status(pid, "NSpid")[1:] == ["1"]]
    return inits[0] if inits else None


def end_inside(namespace: Path, seconds: float = 20) -> None:
    """Power off: the first process dies, the kernel takes the rest; stragglers outside its PID namespace follow."""
    if not namespace.exists():
        return
    home = namespace.stat()
    if (first := first_process(namespace)) is not None:
        signal_if(first, signal.SIGKILL, lambda: lives_in(first, home))
    end_all(namespace, inside(namespace), signal.SIGKILL)
    wait_until(f"the processes of {namespace.name} to end", lambda: not inside(namespace), seconds=seconds)


def end_all(namespace: Path, pids: Sequence[int], number: int) -> None:
    """Signal processes that live in the namespace, each checked again at the moment of the signal."""
    home = namespace.stat()
    for pid in pids:
        signal_if(pid, number, functools.partial(lives_in, pid, home))
