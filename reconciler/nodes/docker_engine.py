"""Readings of a node's Docker Engine, and why it does not answer when it does not."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlencode

import asyncssh
import h11

from reconciler.core.observed import Unknown, UnknownKind
from reconciler.nodes.docker_http import exchange
from reconciler.nodes.errors import ErrorKind, NodeError, NodeUnknownError, short_ids
from reconciler.nodes.ssh import SshSession

CALL_S = 20.0
"""Deadline of an ordinary call. The engine answers within milliseconds unless its disk or the link is in trouble."""

PING_S = 40.0
QUIET_S = 30.0
"""After so long without a word of a pull, the engine is asked whether it lives."""

KINDS = {403: ErrorKind.DENIED, 404: ErrorKind.NOT_FOUND, 409: ErrorKind.CONFLICT}
"""Docker's refusals by HTTP status; all others are REFUSED."""


class DockerEngine:
    """Paths are unversioned, which means the engine's newest API: so no negotiation comes before the first answer."""

    def __init__(self, session: SshSession) -> None:
        self.session = session

    async def get(self, path: str, deadline_s: float = CALL_S, **params: str) -> Any:
        """The JSON of a reading."""
        doing = f"reading {short_ids(path)}"
        try:
            async with asyncio.timeout(deadline_s), self.stream(doing, "GET", path, params) as body:
                return parsed(doing, b"".join([chunk async for chunk in body]))
        except TimeoutError:
            raise self.late(doing, deadline_s) from None

    async def post(self, doing: str, path: str, deadline_s: float = CALL_S, **params: str) -> None:
        """An effect that needs no words beside its address. When the answer is lost, it may have happened."""
        try:
            async with asyncio.timeout(deadline_s), self.stream(doing, "POST", path, params) as body:
                async for _ in body:
                    pass
        except TimeoutError:
            raise self.late(doing, deadline_s) from None

    @asynccontextmanager
    async def stream(
        self,
        doing: str,
        method: str,
        path: str,
        params: Mapping[str, str],
        headers: Mapping[str, str] | None = None,
        refuse: Callable[[str], NodeError] | None = None,
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """The bytes of an answer as they come, without a deadline: unpacking a layer says nothing for minutes.

        A dead link is noticed by SSH's keepalive. `refuse` makes the error of what Docker says when it refuses.
        """
        target = f"{path}?{urlencode(params)}" if params else path
        connection, socket = self.session.connection, self.session.target.docker_socket
        try:
            async with exchange(connection, socket, method, target, headers or {}) as reply:
                if reply.status >= 400:
                    message = explained(await reply.whole())
                    raise refuse(message) if refuse else refusal(doing, reply.status, message)
                yield reply.body
        except (asyncssh.Error, h11.RemoteProtocolError, OSError) as error:
            raise await self.why(doing, error) from error

    async def lively(self, doing: str, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """The same chunks. When none comes for a while the engine is asked whether it lives, beside them.

        Unpacking a layer says nothing for minutes, and a daemon that hangs says nothing for ever.
        """
        coming = asyncio.ensure_future(_next(chunks))
        try:
            while True:
                await asyncio.wait([coming], timeout=QUIET_S)
                if not coming.done():
                    await self._ping(doing)
                    continue
                chunk = coming.result()
                if chunk is None:
                    return
                yield chunk
                coming = asyncio.ensure_future(_next(chunks))
        finally:
            coming.cancel()

    async def _ping(self, doing: str) -> None:
        """Raises `NodeError` of kind TIMEOUT when the engine does not answer."""
        try:
            async with asyncio.timeout(PING_S), self.stream(doing, "GET", "/_ping", {}) as body:
                async for _ in body:
                    pass
        except TimeoutError:
            raise self.late(doing, PING_S) from None

    def late(self, doing: str, deadline_s: float) -> NodeError:
        """The error for an answer that did not come in time."""
        message = f"Docker on {self.session.target.host} did not answer within {deadline_s:g} s while {doing}"
        return NodeError(ErrorKind.TIMEOUT, message)

    async def why(self, doing: str, error: Exception) -> NodeError:
        """The reason behind a connection that ended without an answer: the effect may have happened."""
        target = self.session.target
        if await self.session.is_ending():
            return self.session.lost(doing)
        try:
            _, writer = await self.session.connection.open_unix_connection(target.docker_socket)
        except asyncssh.ChannelOpenError:
            return await self._no_socket()
        except (asyncssh.Error, OSError):
            return self.session.lost(doing)
        writer.close()
        return NodeError(ErrorKind.LOST, f"Docker on {target.host} broke off while {doing}: {error}")

    async def _no_socket(self) -> NodeError:
        """sshd says the same whatever the reason, so a shell looks."""
        target = self.session.target
        found = await self.session.run_script(_LOOK, CALL_S, target.docker_socket)
        kind, reason, hint = _REASONS[next((word for word in found.split() if word in _REASONS), "down")]
        values = {"user": target.login, "host": target.host, "socket": target.docker_socket}
        return NodeUnknownError(Unknown(target.name, kind, reason.format(**values), hint.format(**values)))


async def _next(chunks: AsyncIterator[bytes]) -> bytes | None:
    return await anext(chunks, None)


_LOOK = r"""
if [ ! -e "$1" ]; then echo missing
elif [ ! -w "$1" ]; then echo denied
elif grep -q " 00010000 .*/${1##*/}\$" /proc/net/unix; then echo forbidden
else echo down
fi
"""
"""`00010000` marks a socket that somebody listens on."""

_REASONS = {
    "missing": (
        UnknownKind.DOCKER_DOWN,
        "Docker on {host} has no socket {socket}",
        "`systemctl status docker` on {host}; another socket is set by docker.socket in the spec",
    ),
    "down": (
        UnknownKind.DOCKER_DOWN,
        "Docker on {host} does not answer at {socket}",
        "`systemctl status docker` on {host}",
    ),
    "denied": (
        UnknownKind.DOCKER_DENIED,
        "{user} may not use the Docker socket {socket} on {host}",
        "`sudo usermod -aG docker {user}` on {host}; it counts from the next login on",
    ),
    "forbidden": (
        UnknownKind.DOCKER_DENIED,
        "sshd on {host} does not forward to the Docker socket {socket}",
        "its sshd_config needs `AllowStreamLocalForwarding yes` and `AllowTcpForwarding yes` (OpenSSH asks for both)",
    ),
}


def refusal(doing: str, status: int | None, message: str) -> NodeError:
    """Docker's own no: the effect did not happen."""
    return NodeError(KINDS.get(status or 0, ErrorKind.REFUSED), f"Docker refused while {doing}: {short_ids(message)}")


def parsed(doing: str, body: bytes) -> Any:
    """The JSON of an answer. Raises `NodeError` when it is none."""
    try:
        return json.loads(body)
    except ValueError as error:
        raise NodeError(ErrorKind.REFUSED, f"Docker's answer while {doing} is no JSON: {error}") from error


def explained(body: bytes) -> str:
    """What Docker says when it refuses."""
    try:
        return str(json.loads(body)["message"])
    except (ValueError, KeyError, TypeError):
        return body.decode(errors="replace").strip()
