"""One HTTP/1.1 exchange with the Docker Engine, on an SSH channel of its own, without a thread.

For all that is read. The docker SDK would do it on threads over a forwarded socket, for a third more time; it takes a
broken connection for the end of a log, and has no way to end a pull. Here, cancelling the task closes the channel.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

import asyncssh
import h11

READ_BYTES = 1 << 16


@dataclass(frozen=True)
class Reply:
    """The status, and the body as it comes."""

    status: int
    body: AsyncIterator[bytes]

    async def whole(self) -> bytes:
        """The body to its end."""
        return b"".join([chunk async for chunk in self.body])


@asynccontextmanager
async def exchange(
    connection: asyncssh.SSHClientConnection, socket: str, method: str, target: str, headers: Mapping[str, str]
) -> AsyncIterator[Reply]:
    """Ask, and take the answer inside the block. Leaving it ends the exchange, wherever that is.

    Raises `asyncssh.ChannelOpenError` when nobody listens on `socket`, and `h11.RemoteProtocolError` when the answer
    breaks off.
    """
    reader, writer = await connection.open_unix_connection(socket)
    try:
        link = h11.Connection(h11.CLIENT)
        lines = [("Host", "docker"), ("Connection", "close"), *headers.items()]
        if method == "POST":
            lines.append(("Content-Length", "0"))
        request = h11.Request(method=method, target=target, headers=lines)
        writer.write((link.send(request) or b"") + (link.send(h11.EndOfMessage()) or b""))
        head = await _next(link, reader)
        while isinstance(head, h11.InformationalResponse):
            head = await _next(link, reader)
        if not isinstance(head, h11.Response):
            raise h11.RemoteProtocolError("the connection ended before an answer")
        yield Reply(head.status_code, _body(link, reader))
    finally:
        writer.close()


async def _body(link: h11.Connection, reader: asyncssh.SSHReader[bytes]) -> AsyncIterator[bytes]:
    while isinstance(event := await _next(link, reader), h11.Data):
        yield bytes(event.data)


async def _next(link: h11.Connection, reader: asyncssh.SSHReader[bytes]) -> object:
    while (event := link.next_event()) is h11.NEED_DATA:
        link.receive_data(await reader.read(READ_BYTES))
    return event
