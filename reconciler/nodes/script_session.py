"""One command on an SSH channel: its input given at once, its output taken as it comes.

asyncssh's own `run` does the same with streams for stdin, stdout and stderr, which costs half as much again.
"""

import asyncio
import contextlib
from collections.abc import Mapping

import asyncssh


async def output_of(
    connection: asyncssh.SSHClientConnection, command: str, given: bytes, env: Mapping[str, str]
) -> bytes:
    """What `command` prints on its standard output until its channel closes; its exit status does not matter.

    Raises `asyncssh.Error` or `OSError` when sshd runs no command, or the connection is lost. Cancelling ends the
    channel.
    """
    session = _Output()
    channel, _ = await connection.create_session(lambda: session, command, env=tuple(env.items()), encoding=None)
    try:
        with contextlib.suppress(BrokenPipeError):  # it ended already; what it printed says why
            channel.write(given)
            channel.write_eof()
        return await session.whole
    finally:
        channel.close()


class _Output(asyncssh.SSHClientSession[bytes]):
    """Gathers standard output."""

    def __init__(self) -> None:
        self._gathered = bytearray()
        self.whole: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    def data_received(self, data: bytes, datatype: int | None) -> None:
        """More of it. Standard error has a `datatype`."""
        if datatype is None:
            self._gathered += data

    def connection_lost(self, exc: Exception | None) -> None:
        """The channel closed, or the connection is gone."""
        if self.whole.done():
            return
        if exc is None:
            self.whole.set_result(bytes(self._gathered))
        else:
            self.whole.set_exception(exc)
            self.whole.exception()  # nobody may be there to take it, when the command was not begun yet
