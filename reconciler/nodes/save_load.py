"""The last resort: an image from one node's Docker to another's, by `docker save` and `docker load`.

Between two OpenSSH children, without a file here. It moves everything, nobody verifies it on the way, and digests may
be lost: whoever calls this looks at the content afterwards. That `docker load` ends well proves nothing.
"""

import asyncio
import os
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager
from functools import partial
from typing import IO, NoReturn

from reconciler.nodes.errors import ErrorKind, NodeError
from reconciler.nodes.openssh import Child, OpenSsh, Pipe, login_command
from reconciler.threads import in_thread

CHUNK_BYTES = 1 << 20
TAIL_LINES = 20
SSH_FAILED = 255
NO_DOCKER = 127

OnBytes = Callable[[int], None]
"""Bytes moved so far. Called on a thread of its own."""

_DOCKER = (
    "export DOCKER_HOST=unix://$1; command -v docker >/dev/null || { echo no docker program there >&2; exit 127; }; "
)
_SAVE = _DOCKER + 'echo; echo "@@fleet archive"; exec docker save "$2"'
_LOAD = 'exec 2>&1; echo; echo "@@fleet load"; ' + _DOCKER + "exec docker load"
_START = b"@@fleet archive\n"
_LOAD_START = "@@fleet load\n"
"""Before the archive, and before what `docker load` says: the words of the login shell's start-up files are no part."""

_NO_SPACE = "no space left on device"
_UNLOADED = ("Error unpacking", _NO_SPACE)
"""In the output of a `docker load` that ends with status 0 all the same: the containerd store unpacks after it."""

_MISSING = ("No such image", "reference does not exist", "not found")


async def copy(source: OpenSsh, target: OpenSsh, reference: str, on_bytes: OnBytes) -> None:
    """Bring the image `reference` of `source` into the store of `target`.

    `reference` is a tag of it where there is one: of an image that is asked for by digest, the containerd store writes
    no name. Raises `NodeError`, of kind NOT_FOUND, NO_SPACE or REFUSED, `NodeUnknownError` when a connection ended.
    """
    with ExitStack() as ends:
        from_save, of_save = _pipe(ends)
        of_load, to_load = _pipe(ends)
        async with _saving(source, reference, of_save) as saving, _loading(target, of_load) as loading:
            for end in (of_save, of_load):
                end.close()
            output = asyncio.create_task(loading.stdout.read())
            move = partial(_move, os.dup(from_save.fileno()), os.dup(to_load.fileno()), on_bytes)
            from_save.close()
            if await in_thread(move):
                await _insist_on_saved(saving, reference)
            to_load.close()
            await _insist_on_loaded(loading, reference, (await output).decode(errors="replace"))


async def export(ssh: OpenSsh, reference: str) -> AsyncIterator[bytes]:
    """The archive that `docker save` writes, as it comes. Raises `NodeError`. Close it to end in the middle."""
    command = login_command(_SAVE, ssh.target.docker_socket, reference)
    async with _child(ssh, command, subprocess.DEVNULL, subprocess.PIPE) as saving:
        while (line := await saving.stdout.readline()) not in {b"", _START}:
            pass
        while line and (chunk := await saving.stdout.read(CHUNK_BYTES)):
            yield chunk
        await _insist_on_saved(saving, reference)


def _pipe(ends: ExitStack) -> tuple[IO[bytes], IO[bytes]]:
    reader, writer = os.pipe()
    return ends.enter_context(open(reader, "rb", 0)), ends.enter_context(open(writer, "wb", 0))  # noqa: PTH123


def _move(source: int, target: int, on_bytes: OnBytes) -> bool:
    """On a thread: all of the archive, a chunk at a time; whether all was taken. Closes both of its ends."""
    moved = 0
    with open(source, "rb", 0) as reader, open(target, "wb", 0) as writer:
        chunk = _after_start(reader)
        while chunk:
            rest = memoryview(chunk)
            try:
                while rest:
                    rest = rest[writer.write(rest) :]
            except BrokenPipeError:
                return False
            moved += len(chunk)
            on_bytes(moved)
            chunk = reader.read(CHUNK_BYTES)
    return True


def _after_start(reader: IO[bytes]) -> bytes:
    """The first bytes of the archive; none when it ends before."""
    seen = b""
    while _START not in seen:
        chunk = reader.read(CHUNK_BYTES)
        if not chunk:
            return b""
        seen += chunk
    first = seen.partition(_START)[2]
    return first or reader.read(CHUNK_BYTES)


def _saving(ssh: OpenSsh, reference: str, output: IO[bytes]) -> AbstractAsyncContextManager[Child]:
    return _child(ssh, login_command(_SAVE, ssh.target.docker_socket, reference), subprocess.DEVNULL, output)


def _loading(ssh: OpenSsh, archive: IO[bytes]) -> AbstractAsyncContextManager[Child]:
    return _child(ssh, login_command(_LOAD, ssh.target.docker_socket), archive, subprocess.PIPE)


@asynccontextmanager
async def _child(ssh: OpenSsh, command: str, stdin: Pipe, stdout: Pipe) -> AsyncIterator[Child]:
    child = await ssh.start(command, stdin=stdin, stdout=stdout)
    try:
        yield child
    finally:
        await asyncio.shield(child.close())


async def _insist_on_saved(saving: Child, reference: str) -> None:
    status = await saving.ended()
    if status:
        await _raise(saving, status, f"docker save {reference} on {saving.target.name}", await saving.words())


async def _insist_on_loaded(loading: Child, reference: str, output: str) -> None:
    status = await loading.ended()
    said = output.partition(_LOAD_START)[2].strip()
    doing = f"docker load of {reference} on {loading.target.name}"
    if _NO_SPACE in said:
        message = f"{doing} failed: {_last(said)}"
        raise NodeError(ErrorKind.NO_SPACE, message, "loading needs twice the size of the image")
    if status or any(words in said for words in _UNLOADED):
        await _raise(loading, status, doing, said)


async def _raise(child: Child, status: int, doing: str, said: str) -> NoReturn:
    if status == SSH_FAILED:
        raise await child.failure()
    last = _last(said) or f"status {status}, without a word"
    if status == NO_DOCKER:
        hint = f"install Docker's command line on {child.target.host}"
        raise NodeError(ErrorKind.REFUSED, f"{doing} failed: {last}", hint)
    missing = any(words in said for words in _MISSING)
    raise NodeError(ErrorKind.NOT_FOUND if missing else ErrorKind.REFUSED, f"{doing} failed: {last}")


def _last(said: str) -> str:
    return "\n".join(said.splitlines()[-TAIL_LINES:])
