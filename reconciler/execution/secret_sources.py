"""Where secrets come from: a variable, a file, a command or a sops file of the controller. All of these may block.

What a command says goes nowhere but into the value: neither its output nor its errors are ever told.
"""

import asyncio
import contextlib
import os
import shlex
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")

FILE_S = 10.0
"""Deadline of reading a file: a network storage may be away."""

COMMAND_S = 30.0
"""Deadline of a command. It may ask a service, and never a person: its stdin is closed and it has no terminal."""

LARGEST_BYTES = 120 * 1024
"""The kernel takes no variable of more than 128 KiB, name and all: a container would be created and never start."""


class SecretError(Exception):
    """A reference that cannot be resolved: why, and what to do. Holds the reference, never a value."""

    def __init__(self, reference: str, reason: str, hint: str = "") -> None:
        self.reference, self.reason, self.hint = reference, reason, hint
        told = f"secret {reference if len(reference) <= 100 else f'{reference[:100]}…'}: {reason}"
        super().__init__(f"{told} ({hint})" if hint else told)


async def value_of(reference: str) -> str:
    """The value. Raises `SecretError`."""
    kind, _, rest = reference.partition(":")
    source = _SOURCES.get(kind)
    if source is None:
        raise SecretError(reference, "no kind of reference that this fleet knows")
    raw = await source(reference, rest)
    return _checked(reference, raw.removesuffix(b"\n") if kind != "env" else raw)


def variable(name: str) -> str | None:
    """The value of a variable of this process, if it is one that `env:` would take."""
    try:
        return _checked(f"env:{name}", _from_environment(f"env:{name}", name))
    except SecretError:
        return None


def _checked(reference: str, raw: bytes) -> str:
    if len(raw) > LARGEST_BYTES:
        raise SecretError(reference, f"is larger than {LARGEST_BYTES // 1024} KiB, which no variable can be")
    if not raw:
        raise SecretError(reference, "is empty", "a CI job gives a secret that it does not have as an empty text")
    if b"\0" in raw:
        raise SecretError(reference, "holds a NUL character, which no variable of a container can")
    try:
        return raw.decode()
    except UnicodeDecodeError:
        raise SecretError(reference, "not UTF-8 text") from None


async def _variable(reference: str, name: str) -> bytes:
    return _from_environment(reference, name)


def _from_environment(reference: str, name: str) -> bytes:
    value = os.environb.get(name.encode())
    if value is None:
        raise SecretError(
            reference, "the variable is not set here", "export it where fleet runs: a shell, a CI job and cron differ"
        )
    return value


async def _file(reference: str, path: str) -> bytes:
    try:
        async with asyncio.timeout(FILE_S):
            return await _on_a_thread(lambda: _read(Path(path)))
    except TimeoutError:
        raise SecretError(reference, f"is not read within {FILE_S:g} s", "see whether its storage is there") from None
    except OSError as error:
        hint = "write the value there, for your eyes only" if isinstance(error, FileNotFoundError) else ""
        raise SecretError(reference, (error.strerror or "cannot be read").lower(), hint) from None


def _read(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(LARGEST_BYTES + 2)


async def _command(reference: str, line: str) -> bytes:
    return await _said(reference, shlex.split(line), f"run it by hand to see why: {line}")


async def _sops(reference: str, rest: str) -> bytes:
    path, _, keys = rest.rpartition("#")
    if shutil.which("sops") is None:
        raise SecretError(reference, "there is no sops program here", "install it, or use file: or command:")
    if not Path(path).exists():
        raise SecretError(reference, "there is no such file")
    tree = "".join(f"[{key}]" if key.isdecimal() else f'["{key}"]' for key in keys.split("."))
    argv = ["sops", "--decrypt", "--extract", tree, path]
    return await _said(reference, argv, f"run it by hand to see why: {shlex.join(argv)}")


async def _said(reference: str, argv: list[str], hint: str) -> bytes:
    """What a program says on its standard output."""
    call = _Call(argv)
    try:
        async with asyncio.timeout(COMMAND_S):
            code, said = await _on_a_thread(call.run)
    except TimeoutError:
        raise _late(reference, hint) from None
    except OSError as error:
        reason = (error.strerror or "it cannot be started").lower()
        raise SecretError(reference, f"{argv[0]} cannot be run: {reason}") from None
    finally:
        call.end()
    if call.is_late:
        raise _late(reference, hint)
    if code:
        end = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
        raise SecretError(reference, f"{Path(argv[0]).name} {end}", hint)
    return said


def _late(reference: str, hint: str) -> SecretError:
    return SecretError(reference, f"did not end within {COMMAND_S:g} s and was ended", hint)


class _Call:
    """One run of a program, in a session of its own: no terminal to ask at, and all it starts is ended with it."""

    def __init__(self, argv: list[str]) -> None:
        self._argv = argv
        self._process: subprocess.Popen[bytes] | None = None
        self._is_over = False
        self.is_late = False
        self._starting = threading.Lock()

    def run(self) -> tuple[int, bytes]:
        """Exit code and output, cut where no value could be longer. Raises `OSError`."""
        with self._starting:
            if self._is_over:
                return 0, b""
            self._process = subprocess.Popen(
                self._argv,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        with self._process as process:
            ending = threading.Timer(COMMAND_S, self._late)  # of its own: a simulated loop runs this in its own thread
            ending.daemon = True
            ending.start()
            said = process.stdout.read(LARGEST_BYTES + 2) if process.stdout else b""
            if len(said) > LARGEST_BYTES + 1:
                self._kill(process)
            code = process.wait()
            ending.cancel()
        return (0 if len(said) > LARGEST_BYTES + 1 else code), said

    def _late(self) -> None:
        self.is_late = True
        self.end()

    def end(self) -> None:
        """End whatever of it still runs."""
        with self._starting:
            self._is_over = True
            if self._process is not None and self._process.returncode is None:
                self._kill(self._process)

    def _kill(self, process: "subprocess.Popen[bytes]") -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


class _Daemons(Executor):
    """A daemon thread a call: nothing that hangs holds up the end of the process. A simulated loop takes none of it."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> "Future[Any]":
        """Start it."""
        future: Future[Any] = Future()

        def run() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                future.set_result(fn(*args, **kwargs))
            except BaseException as error:  # noqa: BLE001 - it is raised where the call is awaited
                future.set_exception(error)

        threading.Thread(target=run, daemon=True, name="fleet-secret").start()
        return future


_DAEMONS = _Daemons()


async def _on_a_thread(call: Callable[[], T]) -> T:
    return await asyncio.get_running_loop().run_in_executor(_DAEMONS, call)


_SOURCES = {"env": _variable, "file": _file, "command": _command, "sops": _sops}
