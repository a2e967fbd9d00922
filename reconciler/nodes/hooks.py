"""Calls hooks on the controller: programs without a shell, in a process group of their own, and web hooks."""

import asyncio
import contextlib
import os
import signal
from asyncio.subprocess import DEVNULL, PIPE, STDOUT, Process
from typing import TYPE_CHECKING

from reconciler.core.hooks import HookCall, HookError

if TYPE_CHECKING:
    import httpx

KEPT = ("HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TZ", "TMPDIR")
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

SAID_BYTES = 4096
"""So much of the end of what a hook says is kept."""

GRACE_S = 2.0
"""After SIGTERM at the end of its time a program has so long; then SIGKILL."""

LOOK_S = 0.02
"""How often it is seen whether a program has ended."""

LATE_OUTPUT_S = 0.2
"""So long the rest of what it said is waited for: one that left its group may keep it open."""


class ControllerHooks:
    """See `protocols.Hooks`."""

    async def call(self, call: HookCall) -> str:
        """Call it, wait for its end; the end of what it said. Raises `HookError`."""
        return await (_run(call) if call.command else _post(call))


async def _run(call: HookCall) -> str:
    inherited = {name: os.environ[name] for name in KEPT if name in os.environ}
    environment = {"PATH": os.environ.get("PATH", PATH), **inherited, **call.given}
    try:
        process = await asyncio.create_subprocess_exec(
            *call.command,
            stdin=PIPE if call.text else DEVNULL,
            stdout=PIPE,
            stderr=STDOUT,
            cwd=call.folder or None,
            env=environment,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise HookError(f"{call.command[0]} cannot be run: {why.lower()}") from None
    said = bytearray()
    reading = asyncio.create_task(_read(process, said))
    feeding = asyncio.create_task(_feed(process, call.text))
    try:
        code = await _ended(process, call.timeout_s)
    finally:
        _signal(process, signal.SIGKILL)  # cancelled, or what it has left in the background
        await _exit_code(process)
        await asyncio.wait([reading], timeout=LATE_OUTPUT_S)
        reading.cancel()
        feeding.cancel()
    text = said.decode(errors="replace").strip()
    if code is None:
        raise HookError(_with(f"it did not end within {call.timeout_s:g} s and was killed", text))
    if code != 0:
        how = f"exit code {code}" if code > 0 else f"it was ended by signal {-code}"
        raise HookError(_with(how, text))
    return text


async def _ended(process: Process, timeout_s: float) -> int | None:
    """Its exit code; None when its time was over, and it and its group were killed."""
    try:
        async with asyncio.timeout(timeout_s):
            return await _exit_code(process)
    except TimeoutError:
        _signal(process, signal.SIGTERM)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(GRACE_S):
            await _exit_code(process)
    return None


async def _exit_code(process: Process) -> int:
    """Not `process.wait()`: that waits for whoever else holds its output open, too."""
    while process.returncode is None:
        await asyncio.sleep(LOOK_S)
    return process.returncode


def _signal(process: Process, number: signal.Signals) -> None:
    """To its whole group: a shell script's children are what hangs."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


async def _read(process: Process, said: bytearray) -> None:
    while process.stdout is not None and (part := await process.stdout.read(65536)):
        said += part
        del said[:-SAID_BYTES]


async def _feed(process: Process, text: str) -> None:
    """A program need not read what it is told."""
    if process.stdin is None:
        return
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        process.stdin.write(text.encode())
        await process.stdin.drain()
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        process.stdin.close()


async def _post(call: HookCall) -> str:
    import httpx  # noqa: PLC0415 - only a web hook pays for it

    headers = {"Content-Type": "application/json", **call.given}
    try:
        async with (
            asyncio.timeout(call.timeout_s),
            httpx.AsyncClient(timeout=call.timeout_s) as client,
            client.stream("POST", call.url, content=call.text.encode(), headers=headers) as answer,
        ):
            said = await _body(answer)
    except (TimeoutError, httpx.TimeoutException):
        raise HookError(f"no answer within {call.timeout_s:g} s") from None
    except (httpx.HTTPError, httpx.InvalidURL, UnicodeError, ValueError) as error:
        raise HookError(f"{type(error).__name__}: {error}") from None
    if not answer.is_success:
        raise HookError(_with(f"it answered {answer.status_code}", said))
    return said


async def _body(answer: "httpx.Response") -> str:
    said = b""
    async for part in answer.aiter_bytes():
        said += part
        if len(said) >= SAID_BYTES:
            break
    return said[:SAID_BYTES].decode(errors="replace").strip()


def _with(why: str, said: str) -> str:
    return f"{why}: {said}" if said else why
