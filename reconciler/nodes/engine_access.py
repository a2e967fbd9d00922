"""HTTP to the engines of a node through its SSH connection: the controller needs no other way in."""

import asyncio
import json
from collections.abc import Mapping
from urllib.parse import quote

import asyncssh
import h11

from reconciler.nodes.docker_http import Reply, exchanged
from reconciler.nodes.errors import ErrorKind, NodeError
from reconciler.nodes.protocols import HttpReply
from reconciler.nodes.ssh import SshSession

LARGEST_ANSWER = 16 * 1024 * 1024
"""Bytes. Answers to what we ask are kilobytes; a broken engine may go on for ever."""

PLAIN = {"Accept": "*/*", "Accept-Encoding": "identity", "User-Agent": "fleet"}
"""Nothing is decompressed: what an engine sends all the same is judged as it comes."""

JSON = {"Content-Type": "application/json"}

AS_IT_IS = "".join(letter for letter in map(chr, range(128)) if letter not in ' "<>`{}')
"""What of a path is not escaped. What no path may hold is among it: h11 refuses that."""


class SshEngines:
    """A channel for each request: it costs a round trip, and is gone with the request."""

    def __init__(self, session: SshSession) -> None:
        self._session = session

    async def http(
        self, address: str, port: int, method: str, path: str, body: Mapping[str, object] | None, timeout_s: float
    ) -> HttpReply:
        """One HTTP request to `address:port` as seen from the node, whole within `timeout_s`."""
        doing = f"{method} http://{_host(address)}:{port}{path} on {self._session.target.name}"
        headers = {"Host": f"{_host(address)}:{port}", **PLAIN, **({} if body is None else JSON)}
        content = b"" if body is None else json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
        target = quote(path, safe=AS_IT_IS)
        try:
            async with asyncio.timeout(timeout_s):
                channel = await self._session.connection.open_connection(address, port)
                async with exchanged(*channel, method, target, headers, content) as reply:
                    return HttpReply(reply.status, await _whole(reply, doing))
        except TimeoutError:
            raise await self._late(doing, timeout_s) from None
        except h11.LocalProtocolError as error:
            raise NodeError(ErrorKind.REFUSED, f"{doing!r} cannot be asked: {error}", "check health.path") from error
        except (asyncssh.Error, h11.RemoteProtocolError, OSError) as error:
            raise await self._why(doing, (address, port), error) from error

    async def accepts(self, address: str, port: int, timeout_s: float) -> bool:
        """Whether `address:port` accepts a TCP connection, as seen from the node."""
        try:
            async with asyncio.timeout(timeout_s):
                _, writer = await self._session.connection.open_connection(address, port)
        except (TimeoutError, asyncssh.ChannelOpenError):
            if await self._session.is_ending():
                raise self._session.lost(f"trying {address}:{port}") from None
            return False
        except (asyncssh.Error, OSError) as error:
            raise self._session.lost(f"trying {address}:{port}") from error
        writer.close()
        return True

    async def _late(self, doing: str, timeout_s: float) -> NodeError:
        if await self._session.is_ending():
            return self._session.lost(doing)
        return NodeError(ErrorKind.TIMEOUT, f"{doing}: no answer within {timeout_s:g} s")

    async def _why(self, doing: str, place: tuple[str, int], error: Exception) -> NodeError:
        """The engine's end and the connection's end look the same on the channel: look again."""
        try:
            answers = await self.accepts(*place, timeout_s=5.0)
        except NodeError as lost:
            return lost
        if answers:
            return NodeError(ErrorKind.REFUSED, f"{doing}: the engine broke off ({error})")
        return NodeError(ErrorKind.REFUSED, f"{doing}: nothing listens there")


async def _whole(reply: Reply, doing: str) -> bytes:
    body = bytearray()
    async for chunk in reply.body:
        body += chunk
        if len(body) > LARGEST_ANSWER:
            raise NodeError(ErrorKind.REFUSED, f"{doing}: the answer has more than {LARGEST_ANSWER >> 20} MiB")
    return bytes(body)


def _host(address: str) -> str:
    return f"[{address}]" if ":" in address else address
