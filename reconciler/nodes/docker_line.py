"""Many short readings of a Docker Engine over one SSH channel: all are asked at once, the answers come in their order.

A channel costs more of the controller than a reading, and a packet more than its words: what is asked in one turn of
the event loop is one packet. Whatever goes wrong with the channel, each reading that has no answer yet is asked again
on one of its own: readings change nothing, and `DockerEngine` knows best what is wrong.
"""

import asyncio
from collections import deque
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlencode

import asyncssh
import h11

from reconciler.nodes.docker_engine import CALL_S, DockerEngine, explained, parsed, refusal
from reconciler.nodes.docker_http import request
from reconciler.nodes.errors import short_ids

Answer = tuple[int, bytes]
"""Status and body."""


class DockerLine:
    """For one look at a node: inside the block. A reading that takes long holds up those behind it."""

    def __init__(self, engine: DockerEngine) -> None:
        self._engine = engine
        self._channel = _Channel()
        self._opening: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._channel.close()
        if self._opening is not None:
            self._opening.cancel()
            await asyncio.gather(self._opening, return_exceptions=True)

    async def get(self, path: str, deadline_s: float = CALL_S, **params: str) -> Any:
        """The JSON of a reading, as `DockerEngine.get`, and with its errors."""
        doing = f"reading {short_ids(path)}"
        try:
            status, body = await self._asked(f"{path}?{urlencode(params)}" if params else path, deadline_s)
        except _LateError:
            raise self._engine.late(doing, deadline_s) from None
        except (asyncssh.Error, h11.RemoteProtocolError, OSError):
            return await self._engine.get(path, deadline_s, **params)
        if status >= 400:
            raise refusal(doing, status, explained(body))
        return parsed(doing, body)

    async def _asked(self, target: str, deadline_s: float) -> Answer:
        """Who asks first is answered first."""
        if self._opening is None:
            self._opening = asyncio.ensure_future(self._open())
        answer = self._channel.ask(target)
        late = asyncio.get_running_loop().call_later(deadline_s, _give_up, answer)
        try:
            return await answer
        except (_LateError, asyncio.CancelledError):  # its answer may still come, and would hold up the next
            self._channel.end(h11.RemoteProtocolError("this channel is of no more use"))
            raise
        finally:
            late.cancel()

    async def _open(self) -> None:
        session = self._engine.session
        try:
            await session.connection.create_unix_connection(lambda: self._channel, session.target.docker_socket)
        except (asyncssh.Error, OSError) as error:
            self._channel.end(error)


class _LateError(Exception):
    """No answer within the deadline of a reading."""


def _give_up(answer: "asyncio.Future[Answer]") -> None:
    if not answer.done():
        answer.set_exception(_LateError())


class _Channel(asyncssh.SSHUNIXSession[bytes]):
    """Readings and their answers, from before the channel is open until it ends."""

    def __init__(self) -> None:
        self._channel: asyncssh.SSHUNIXChannel[bytes] | None = None
        self._unsent = bytearray()
        self._waiting: deque[tuple[h11.Connection, asyncio.Future[Answer]]] = deque()
        self._status, self._body = 0, bytearray()
        self._error: Exception | None = None

    def ask(self, target: str) -> "asyncio.Future[Answer]":
        """The answer to come; the error with which the channel ended, should that be first."""
        loop = asyncio.get_running_loop()
        link, answer = h11.Connection(h11.CLIENT), loop.create_future()
        if self._error is not None:
            answer.set_exception(self._error)
            return answer
        if self._channel is not None and not self._unsent:
            loop.call_soon(self._send)
        self._unsent += request(link, "GET", target)
        self._waiting.append((link, answer))
        return answer

    def end(self, error: Exception) -> None:
        """Nothing more is asked or answered here: `error` is for all that wait, and for all to come."""
        self._error = self._error or error
        self.close()
        while self._waiting:
            _, answer = self._waiting.popleft()
            if not answer.done():
                answer.set_exception(error)

    def close(self) -> None:
        """Close the channel, when there is one."""
        if self._channel is not None:
            self._channel.close()

    def connection_made(self, chan: "asyncssh.SSHUNIXChannel[bytes]") -> None:
        """It is open: all that was asked until now is sent."""
        self._channel = chan
        self._send()

    def data_received(self, data: bytes, datatype: int | None) -> None:
        """A piece of an answer, or of several."""
        try:
            while data and self._error is None:
                data = self._take(data)
        except h11.RemoteProtocolError as error:
            self.end(error)

    def eof_received(self) -> bool:
        """Docker ends it."""
        self.end(h11.RemoteProtocolError("the connection ended before an answer"))
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """It is closed, or the SSH connection is gone."""
        self.end(exc or h11.RemoteProtocolError("the connection ended before an answer"))

    def _send(self) -> None:
        if self._channel is not None and self._error is None and self._unsent:
            unsent, self._unsent = self._unsent, bytearray()
            self._channel.write(bytes(unsent))

    def _take(self, data: bytes) -> bytes:
        """Give `data` to who waits first. What is left of it, for the next, when that one has its whole answer."""
        if not self._waiting:
            raise h11.RemoteProtocolError("an answer that nobody asked for")
        link, answer = self._waiting[0]
        link.receive_data(data)
        while not isinstance(event := link.next_event(), h11.EndOfMessage):
            if event is h11.NEED_DATA:
                return b""
            if isinstance(event, h11.Response):
                self._status, self._body = event.status_code, bytearray()
            elif isinstance(event, h11.Data):
                self._body += event.data
        self._waiting.popleft()
        if not answer.done():
            answer.set_result((self._status, bytes(self._body)))
        if link.their_state is not h11.DONE:
            raise h11.RemoteProtocolError("it says that it closes")
        return link.trailing_data[0]
