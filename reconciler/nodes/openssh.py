"""Gigabytes go through `ssh` children: one process each, beside the event loop and two to four times as fast.

asyncssh stays the control connection. A child that brings nothing back but its end is held by its stdin: when this
process dies, however it dies, the far side reads the end of it and goes.
"""

import asyncio
import contextlib
import os
import re
import shlex
import shutil
import signal
import subprocess
import threading
import weakref
from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TypeVar

from reconciler.core.observed import Listener, Unknown, UnknownKind
from reconciler.nodes import facts, loopback, ssh_config
from reconciler.nodes.child_env import child_environment
from reconciler.nodes.errors import ErrorKind, NodeError, NodeUnknownError
from reconciler.nodes.forwards import Forward
from reconciler.nodes.host_keys import place
from reconciler.nodes.sockets import SocketPaths
from reconciler.nodes.targets import SshTarget, silence_hint, silent

S = TypeVar("S")
Pipe = int | IO[bytes]

OPEN_S = 40.0
"""Deadline until a child is ready: a handshake, through a jump host maybe, on a busy link."""

END_S = 2.0
TAIL_LINES = 20
LONGEST_LINE = 1 << 20

HOLD = "cat >/dev/null; case $(cat /proc/$PPID/comm 2>/dev/null) in sshd*) kill $PPID;; esac"
"""Ends with its stdin, and takes its own sshd along: that would wait for idle connections through the forward."""

_READY = (
    'PATH="$PATH:/usr/local/sbin:/usr/sbin:/sbin"; export PATH; echo; echo "@@fleet begin"; echo "@@fleet listen"; '
    '{ ss -ltnH || cat /proc/net/tcp /proc/net/tcp6; } 2>/dev/null; echo "@@fleet end"; '
)
"""Forwards are answered before the session starts: whoever reads this knows that they stand, and on which address."""

_ALLOCATED = re.compile(r"Allocated port (\d+) for remote forward")
_BAD_IN_SOME_SHELL = re.compile(r"['!\\\n]")


def available() -> bool:
    """Whether there is an `ssh` program here."""
    return shutil.which("ssh") is not None


def login_command(script: str, *arguments: str) -> str:
    """A line for a login shell of any kind that runs `script` in a POSIX sh.

    Raises `ValueError` for a script with a character that some shell reads even inside single quotes.
    """
    if _BAD_IN_SOME_SHELL.search(script):
        raise ValueError(f"not for every login shell: {script}")
    return shlex.join(["exec", "sh", "-c", script, "sh", *arguments])


@dataclass
class Child:
    """A running `ssh`. `listeners`: who listened on the node when it was ready. `ports`: those that sshd chose.

    It is killed at the latest when this process ends, also where nobody comes to close it.
    """

    target: SshTarget
    process: asyncio.subprocess.Process
    forwards: tuple[Forward, ...] = ()
    listeners: tuple[Listener, ...] = ()
    ports: list[int] = field(default_factory=list)
    errors: deque[str] = field(default_factory=lambda: deque(maxlen=TAIL_LINES))

    def __post_init__(self) -> None:
        self._told = asyncio.Event()
        self._at_exit = weakref.finalize(self, _signal_group, self.process, signal.SIGKILL)
        self._listening = asyncio.create_task(self._listen())

    @property
    def stdout(self) -> asyncio.StreamReader:
        """What the program on the node says."""
        return _piped(self.process.stdout)

    async def line(self) -> str | None:
        """The next line of the program on the node; None at its end."""
        raw = await self.stdout.readline()
        return raw.decode(errors="replace").strip() if raw else None

    async def write(self, data: bytes) -> None:
        """Give the program on the node something to read. Raises `NodeError` when the child is gone."""
        stdin = _piped(self.process.stdin)
        stdin.write(data)
        try:
            await stdin.drain()
        except OSError as error:
            raise await self.failure() from error

    async def ended(self) -> int:
        """The exit status, when the child has ended, for whatever reason."""
        return await self.process.wait()

    async def failure(self) -> NodeError:
        """Why it ended, by what it said last. It is ended when it has not."""
        await self.close()
        return failure(self.target, self.forwards, list(self.errors))

    async def words(self) -> str:
        """What it said on stderr, at last. For a child that has ended."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(END_S):
                await asyncio.shield(self._listening)
        return "\n".join(self.errors)

    async def close(self) -> None:
        """End it, and the `ssh` to a jump host with it: asked first, then made to. No effect when it has ended."""
        if self.process.stdin is not None:
            self.process.stdin.close()
        try:
            _signal_group(self.process, signal.SIGTERM)
            async with asyncio.timeout(END_S):
                await self.process.wait()
                await asyncio.shield(self._listening)
        except TimeoutError:
            pass
        finally:
            self._at_exit()
            self._listening.cancel()

    async def become_ready(self) -> None:
        """Return when the forwards stand and the program on the node begins. Raises `NodeError` when it ends."""
        lines: list[str] = []
        while not lines or lines[-1] != f"{facts.MARK}end":
            line = await self.line()
            if line is None:
                raise await self.failure()
            lines.append(line)
        found = facts.parse("\n".join(lines))
        self.listeners = found.listeners if found else ()
        while len(self.ports) < sum(forward.listen_port == 0 for forward in self.forwards):
            self._told.clear()
            await self._told.wait()

    async def _listen(self) -> None:
        async for raw in _piped(self.process.stderr):
            line = raw.decode(errors="replace").strip()
            if match := _ALLOCATED.match(line):
                self.ports.append(int(match[1]))
                self._told.set()
            elif line:
                self.errors.append(line)


class OpenSsh:
    """Starts `ssh` children to one node. The generated configuration is the only one they read."""

    def __init__(self, target: SshTarget) -> None:
        self.target = target
        self._paths = SocketPaths()
        self._writing = threading.Lock()
        self._folder: Path | None = None
        self._written: dict[str, str] = {}

    def argv(self, command: str, *forwards: Forward) -> list[str]:
        """The command line that runs `command` (see `login_command`) on the node. Raises `NodeUnknownError`.

        For whoever starts the process, with a group of its own, so that the terminal's Ctrl-C is not for it.
        """
        remote = (word for item in forwards for word in (item.option, str(item)))
        return ["ssh", "-F", str(self._config()), "-T", *remote, ssh_config.NODE, command]

    async def start(
        self, command: str, *forwards: Forward, stdin: Pipe = subprocess.PIPE, stdout: Pipe = subprocess.PIPE
    ) -> Child:
        """A child just started, of which nothing is known yet. Raises `NodeError` when there is no way to start it."""
        argv, errors = self.argv(command, *forwards), subprocess.PIPE
        try:
            process = await asyncio.create_subprocess_exec(
                *argv,
                env=child_environment(),
                stdin=stdin,
                stdout=stdout,
                stderr=errors,
                limit=LONGEST_LINE,
                start_new_session=True,
            )
        except OSError as error:
            raise NodeError(ErrorKind.REFUSED, f"ssh cannot be started here: {error}") from error
        return Child(self.target, process, forwards)

    async def open(
        self, *forwards: Forward, script: str = HOLD, arguments: Sequence[str] = (), deadline_s: float = OPEN_S
    ) -> Child:
        """A child that is ready: its forwards stand, and `script` begins, with the child's stdin and stdout.

        Raises `NodeError`: of kind CONFLICT when a port is taken or forwarding is not allowed, `NodeUnknownError` when
        there is no way in.
        """
        child = await self.start(login_command(_READY + script, *arguments), *forwards)
        try:
            async with asyncio.timeout(deadline_s):
                await child.become_ready()
        except TimeoutError:
            await child.close()
            raise NodeUnknownError(silent(self.target, deadline_s)) from None
        except BaseException:
            await child.close()
            raise
        return child

    @asynccontextmanager
    async def spawn(
        self, *forwards: Forward, script: str = HOLD, arguments: Sequence[str] = (), deadline_s: float = OPEN_S
    ) -> AsyncIterator[Child]:
        """As `open`, for a block: the child ends with it."""
        child = await self.open(*forwards, script=script, arguments=arguments, deadline_s=deadline_s)
        try:
            yield child
        finally:
            await asyncio.shield(child.close())

    def close(self) -> None:
        """Remove the generated files. Children that run have read theirs."""
        self._paths.close()

    def _config(self) -> Path:
        """Written anew where it differs: the keys of a known_hosts file may have changed. Called on any thread."""
        with self._writing:
            folder = self._folder
            if folder is None or not folder.exists() or ssh_config.render(self.target, folder) != self._written:
                self._folder = folder = self._paths.new()
                self._written = ssh_config.render(self.target, folder)
                folder.mkdir(mode=0o700)
                for name, text in self._written.items():
                    (folder / name).write_text(text)
            return folder / "config"


def failure(target: SshTarget, forwards: Sequence[Forward], errors: Sequence[str]) -> NodeError:
    """What the last words of an `ssh` mean. It has no other way to tell its failures apart than in words."""
    text = " ".join(errors)
    if "remote port forwarding failed" in text:
        return (
            loopback.taken(target, forwards[0].listen_port) if forwards[0].listen_port else loopback.forbidden(target)
        )
    kind = next((kind for words, kind in _KINDS if words in text), UnknownKind.LOST)
    reason = f"ssh to {place(target)} ended: {errors[-1] if errors else 'without a word'}"
    return NodeUnknownError(Unknown(target.name, kind, reason, silence_hint(target)))


_KINDS = (
    ("REMOTE HOST IDENTIFICATION HAS CHANGED", UnknownKind.HOST_KEY_CHANGED),
    ("host key is known for", UnknownKind.HOST_KEY_UNKNOWN),
    ("Host key verification failed", UnknownKind.HOST_KEY_UNKNOWN),
    ("Permission denied", UnknownKind.AUTH),
    ("Could not resolve hostname", UnknownKind.UNRESOLVED),
    ("Connection refused", UnknownKind.REFUSED),
    ("timed out", UnknownKind.TIMEOUT),
    ("No route to host", UnknownKind.TIMEOUT),
)


def _signal_group(process: asyncio.subprocess.Process, number: int) -> None:
    """To a child's whole group, which has its id; not when it has ended, since ids are used again."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)


def _piped(stream: S | None) -> S:
    if stream is None:
        raise TypeError("not a pipe")
    return stream
