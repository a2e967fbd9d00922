"""Many short readings of a Docker Engine over one SSH channel: all are asked at once, the answers come in their order.

A channel costs more of the controller than a reading. Whatever goes wrong with this one, each reading that has no
answer yet is asked again on a channel of its own: readings change nothing, and `DockerEngine` knows best what is wrong.
"""

import asyncio
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlencode

import asyncssh
import h11

from reconciler.nodes.docker_engine import CALL_S, DockerEngine, explained, parsed, refusal
from reconciler.nodes.docker_http import READ_BYTES, request
from reconciler.nodes.errors import short_ids

Streams = tuple["asyncssh.SSHReader[bytes]", "asyncssh.SSHWriter[bytes]"]


class DockerLine:
    """For one look at a node: inside the block. A reading that takes long holds up those behind it."""

    def __init__(self, engine: DockerEngine) -> None:
        self._engine = engine
        self._opening: asyncio.Task[Streams] | None = None
        self._turn = asyncio.Lock()
        self._unread = b""
        self._broken = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._opening is None:
            return
        self._opening.cancel()
        for streams in await asyncio.gather(self._opening, return_exceptions=True):
            if not isinstance(streams, BaseException):
                streams[1].close()

    async def get(self, path: str, deadline_s: float = CALL_S, **params: str) -> Any:
        """The JSON of a reading, as `DockerEngine.get`, and with its errors."""
        doing = f"reading {short_ids(path)}"
        try:
            async with asyncio.timeout(deadline_s):
                status, body = await self._asked(f"{path}?{urlencode(params)}" if params else path)
        except TimeoutError:
            raise self._engine.late(doing, deadline_s) from None
        except (asyncssh.Error, h11.RemoteProtocolError, OSError):
            return await self._engine.get(path, deadline_s, **params)
        if status >= 400:
            raise refusal(doing, status, explained(body))
        return parsed(doing, body)

    async def _asked(self, target: str) -> tuple[int, bytes]:
        """Status and body. Who asks first is answered first: nothing is awaited between asking and queueing."""
        reader, writer = await self._streams()
        link = h11.Connection(h11.CLIENT)
        self._insist()
        writer.write(request(link, "GET", target))
        try:
            async with self._turn:
                self._insist()
                return await self._answer(link, reader)
        except BaseException:  # its answer may still come, and would be taken for that of the next
            self._broken = True
            raise

    async def _streams(self) -> Streams:
        if self._opening is None:
            session = self._engine.session
            self._opening = asyncio.ensure_future(session.connection.open_unix_connection(session.target.docker_socket))
        return await asyncio.shield(self._opening)

    def _insist(self) -> None:
        if self._broken:
            raise h11.RemoteProtocolError("this channel is of no more use")

    async def _answer(self, link: h11.Connection, reader: "asyncssh.SSHReader[bytes]") -> tuple[int, bytes]:
        status, body = 0, bytearray()
        if self._unread:
            link.receive_data(self._unread)
        while not isinstance(event := link.next_event(), h11.EndOfMessage):
            if event is h11.NEED_DATA:
                link.receive_data(await reader.read(READ_BYTES))
            elif isinstance(event, h11.Response):
                status = event.status_code
            elif isinstance(event, h11.Data):
                body += event.data
            elif isinstance(event, h11.ConnectionClosed):
                raise h11.RemoteProtocolError("the connection ended before an answer")
        self._unread = link.trailing_data[0]
        self._broken |= link.their_state is not h11.DONE  # it says that it closes
        return status, bytes(body)
