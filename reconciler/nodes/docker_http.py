"""One HTTP/1.1 exchange on an SSH channel of its own, without a thread: with the Docker Engine, or with a lane's.

For all that is read of Docker. The docker SDK would do it on threads over a forwarded socket, for a third more time; it
takes a broken connection for the end of a log, and has no way to end a pull. Here, cancelling the task closes the
channel.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import lru_cache

import asyncssh
import h11

READ_BYTES = 1 << 18


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
    channel = await connection.open_unix_connection(socket)
    async with exchanged(*channel, method, target, {"Host": "docker", **headers}) as reply:
        yield reply


@asynccontextmanager
async def exchanged(
    reader: asyncssh.SSHReader[bytes],
    writer: asyncssh.SSHWriter[bytes],
    method: str,
    target: str,
    headers: Mapping[str, str],
    content: bytes = b"",
) -> AsyncIterator[Reply]:
    """The same on a channel that is open already, and is closed afterwards. `headers`: with the one of the host.

    Raises `h11.LocalProtocolError` for what cannot be asked, and `h11.RemoteProtocolError`.
    """
    try:
        link = h11.Connection(h11.CLIENT)
        lines = [("Connection", "close"), *headers.items()]
        if method == "POST" or content:
            lines.append(("Content-Length", str(len(content))))
        asked = link.send(h11.Request(method=method, target=target, headers=lines)) or b""
        sent = (link.send(h11.Data(data=content)) or b"") if content else b""
        writer.write(asked + sent + (link.send(h11.EndOfMessage()) or b""))
        head = await _next(link, reader)
        while isinstance(head, h11.InformationalResponse):
            head = await _next(link, reader)
        if not isinstance(head, h11.Response):
            raise h11.RemoteProtocolError("the connection ended before an answer")
        yield Reply(head.status_code, _body(link, reader))
    finally:
        writer.close()


def request(link: h11.Connection, method: str, target: str, *headers: tuple[str, str]) -> bytes:
    """The bytes of a request to Docker, without a body."""
    return (link.send(_head(method, target, headers)) or b"") + (link.send(h11.EndOfMessage()) or b"")


@lru_cache(maxsize=64)
def _head(method: str, target: str, headers: tuple[tuple[str, str], ...]) -> h11.Request:
    """Kept, because a look at each of many nodes asks the same, and h11 checks each letter."""
    return h11.Request(method=method, target=target, headers=[("Host", "docker"), *headers])


async def _body(link: h11.Connection, reader: asyncssh.SSHReader[bytes]) -> AsyncIterator[bytes]:
    """All that is at hand at a time: Docker sends each line of a pull's news as a chunk of its own."""
    while True:
        data, problem = _at_hand(link)
        if data:
            yield data
        if problem is not None:
            raise problem
        if link.their_state is not h11.SEND_BODY:
            return
        link.receive_data(await reader.read(READ_BYTES))


def _at_hand(link: h11.Connection) -> tuple[bytes, h11.RemoteProtocolError | None]:
    """The data that came, and what is wrong behind it."""
    data = bytearray()
    try:
        while isinstance(event := link.next_event(), h11.Data):
            data += event.data
    except h11.RemoteProtocolError as error:
        return bytes(data), error
    return bytes(data), None


async def _next(link: h11.Connection, reader: asyncssh.SSHReader[bytes]) -> object:
    while (event := link.next_event()) is h11.NEED_DATA:
        link.receive_data(await reader.read(READ_BYTES))
    return event
