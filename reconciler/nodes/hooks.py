"""Calls hooks on the controller: programs without a shell, in a process group of their own, and web hooks."""

import asyncio
import contextlib
import os
import signal
from asyncio.subprocess import DEVNULL, PIPE, STDOUT, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from reconciler.core.hooks import HookCall, HookError

if TYPE_CHECKING:
    import httpx

KEPT = ("HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TZ", "TMPDIR")
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

SAID_BYTES = 16384
"""So much of what a hook says is kept, by whole lines: a secret that is cut in two is found by nobody."""

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
    async with _output() as (reader, writer):
        try:
            process = await asyncio.create_subprocess_exec(
                *call.command,
                stdin=PIPE if call.text else DEVNULL,
                stdout=writer,
                stderr=STDOUT,
                cwd=call.folder or None,
                env=environment,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            raise HookError(f"{call.command[0]} cannot be run: {why.lower()}") from None
        finally:
            os.close(writer)
        code, text = await _carried(process, reader, call)
    if code is None:
        raise HookError(f"it did not end within {call.timeout_s:g} s and was killed", text)
    if code != 0:
        raise HookError(f"exit code {code}" if code > 0 else f"it was ended by signal {-code}", text)
    return text


@asynccontextmanager
async def _output() -> AsyncIterator[tuple[asyncio.StreamReader, int]]:
    """A pipe of our own, to be closed while somebody who left the group of the program still holds it open."""
    end, writer = os.pipe()
    reader = asyncio.StreamReader()
    made = asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(end, "rb", buffering=0)
    )
    transport, _ = await made
    try:
        yield reader, writer
    finally:
        transport.close()


async def _carried(process: Process, reader: asyncio.StreamReader, call: HookCall) -> tuple[int | None, str]:
    """Its exit code, None when its time was over, and the end of what it said."""
    said = bytearray()
    reading = asyncio.create_task(_read(reader, said))
    feeding = asyncio.create_task(_feed(process, call.text))
    try:
        code = await _ended(process, call.timeout_s)
    finally:
        _signal(process, signal.SIGKILL)  # cancelled, or what it has left in the background
        await _exit_code(process)
        await asyncio.wait([reading], timeout=LATE_OUTPUT_S)
        reading.cancel()
        feeding.cancel()
        await asyncio.wait([feeding])
    whole = said if len(said) <= SAID_BYTES else said.partition(b"\n")[2]
    return code, whole.decode(errors="replace").strip()


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


async def _read(reader: asyncio.StreamReader, said: bytearray) -> None:
    """Keeps a byte more than is told: that tells that something was cut off."""
    while part := await reader.read(65536):
        said += part
        del said[: -SAID_BYTES - 1]


async def _feed(process: Process, text: str) -> None:
    """A program need not read what it is told."""
    if process.stdin is None:
        return
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        process.stdin.write(text.encode())
        try:
            await process.stdin.drain()
        except asyncio.CancelledError:
            process.stdin.transport.abort()  # what nobody reads would keep it open
            raise
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
    except (httpx.InvalidURL, httpx.UnsupportedProtocol, httpx.LocalProtocolError, ValueError):
        raise HookError("its URL, or a header, is none that can be sent") from None  # which may be a secret: not told
    except httpx.HTTPError as error:
        raise HookError(f"{type(error).__name__}: {error}") from None
    if not answer.is_success:
        raise HookError(f"it answered {answer.status_code}", said)
    return said


async def _body(answer: "httpx.Response") -> str:
    """The beginning of an answer: it may have no end."""
    said = b""
    async for part in answer.aiter_bytes():
        said += part
        if len(said) > SAID_BYTES:
            said = said[:SAID_BYTES].rpartition(b"\n")[0]
            break
    return said.decode(errors="replace").strip()
