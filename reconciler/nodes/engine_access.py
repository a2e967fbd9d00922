"""HTTP to the engines of a node through its SSH connection: the controller needs no other way in."""

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING

import asyncssh

from reconciler.nodes.errors import ErrorKind, NodeError
from reconciler.nodes.protocols import HttpReply
from reconciler.nodes.sockets import SocketPaths
from reconciler.nodes.ssh import SshSession

if TYPE_CHECKING:
    import httpx

Place = tuple[str, int]

LONGEST_S = 3600.0
"""The client's own limit; each request has a closer one."""

LARGEST_ANSWER = 16 * 1024 * 1024
"""Bytes. Answers to what we ask are kilobytes; a broken engine may go on for ever."""

PLAIN = {"Accept-Encoding": "identity"}
"""Nothing is decompressed: what an engine sends all the same is judged as it comes."""


class SshEngines:
    """One forward and one HTTP client for each `address:port`, kept for as long as the session."""

    def __init__(self, session: SshSession, sockets: SocketPaths) -> None:
        self._session = session
        self._sockets = sockets
        self._clients: dict[Place, httpx.AsyncClient] = {}
        self._listeners: list[asyncssh.SSHListener] = []
        self._opening = asyncio.Lock()

    async def http(
        self, address: str, port: int, method: str, path: str, body: Mapping[str, object] | None, timeout_s: float
    ) -> HttpReply:
        """One HTTP request to `address:port` as seen from the node, whole within `timeout_s`."""
        import httpx  # noqa: PLC0415 - 50 ms that a plan does not need

        doing = f"{method} http://{_host(address)}:{port}{path} on {self._session.target.name}"
        try:
            async with asyncio.timeout(timeout_s):
                client = await self._client((address, port))
                async with client.stream(method, path, json=body) as response:
                    return HttpReply(response.status_code, await _whole(response, doing))
        except TimeoutError:
            raise await self._late(doing, timeout_s) from None
        except httpx.InvalidURL as error:
            raise NodeError(ErrorKind.REFUSED, f"{doing!r} cannot be asked: {error}", "check health.path") from error
        except httpx.HTTPError as error:
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

    async def close(self) -> None:
        """End the forwards and the clients."""
        for client in self._clients.values():
            await client.aclose()
        for listener in self._listeners:
            listener.close()

    async def _client(self, place: Place) -> "httpx.AsyncClient":
        import httpx  # noqa: PLC0415 - see http

        async with self._opening:
            if place not in self._clients:
                path = self._sockets.new()
                connection = self._session.connection
                self._listeners.append(await connection.forward_local_path_to_port(str(path), *place))
                transport = httpx.AsyncHTTPTransport(uds=str(path))
                base = f"http://{_host(place[0])}:{place[1]}"
                self._clients[place] = httpx.AsyncClient(
                    transport=transport, base_url=base, timeout=LONGEST_S, trust_env=False, headers=PLAIN
                )
            return self._clients[place]

    async def _late(self, doing: str, timeout_s: float) -> NodeError:
        if await self._session.is_ending():
            return self._session.lost(doing)
        return NodeError(ErrorKind.TIMEOUT, f"{doing}: no answer within {timeout_s:g} s")

    async def _why(self, doing: str, place: Place, error: Exception) -> NodeError:
        """The engine's end and the connection's end look the same on the forwarded socket: look again."""
        try:
            answers = await self.accepts(*place, timeout_s=5.0)
        except NodeError as lost:
            return lost
        if answers:
            return NodeError(ErrorKind.REFUSED, f"{doing}: the engine broke off ({error})")
        return NodeError(ErrorKind.REFUSED, f"{doing}: nothing listens there")


async def _whole(response: "httpx.Response", doing: str) -> bytes:
    body = bytearray()
    async for chunk in response.aiter_raw():
        body += chunk
        if len(body) > LARGEST_ANSWER:
            raise NodeError(ErrorKind.REFUSED, f"{doing}: the answer has more than {LARGEST_ANSWER >> 20} MiB")
    return bytes(body)


def _host(address: str) -> str:
    return f"[{address}]" if ":" in address else address
