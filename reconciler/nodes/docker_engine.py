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
from reconciler.nodes.errors import ErrorKind, NodeError, NodeUnknownError
from reconciler.nodes.ssh import SshSession

CALL_S = 20.0
"""Deadline of an ordinary call. The engine answers within milliseconds unless its disk or the link is in trouble."""

KINDS = {403: ErrorKind.DENIED, 404: ErrorKind.NOT_FOUND, 409: ErrorKind.CONFLICT}
"""Docker's refusals by HTTP status; all others are REFUSED."""


class DockerEngine:
    """Paths are unversioned, which means the engine's newest API: so no negotiation comes before the first answer."""

    def __init__(self, session: SshSession) -> None:
        self.session = session

    async def get(self, path: str, deadline_s: float = CALL_S, **params: str) -> Any:
        """The JSON of a reading."""
        doing = f"reading {path}"
        try:
            async with asyncio.timeout(deadline_s), self.stream(doing, "GET", path, params) as body:
                return json.loads(b"".join([chunk async for chunk in body]))
        except TimeoutError:
            raise self.late(doing, deadline_s) from None
        except ValueError as error:
            raise NodeError(ErrorKind.REFUSED, f"Docker's answer while {doing} is no JSON: {error}") from error

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
                    message = _explained(await reply.whole())
                    raise refuse(message) if refuse else refusal(doing, reply.status, message)
                yield reply.body
        except (asyncssh.Error, h11.RemoteProtocolError, OSError) as error:
            raise await self.why(doing, error) from error

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
        except asyncssh.ChannelOpenError as refusal:
            return await self._no_socket(refusal)
        except (asyncssh.Error, OSError):
            return self.session.lost(doing)
        writer.close()
        return NodeError(ErrorKind.LOST, f"Docker on {target.host} broke off while {doing}: {error}")

    async def _no_socket(self, refusal: asyncssh.ChannelOpenError) -> NodeError:
        """sshd says the same for all reasons but one, so ask a shell."""
        target = self.session.target
        if refusal.code == asyncssh.OPEN_ADMINISTRATIVELY_PROHIBITED:
            hint = "set `AllowStreamLocalForwarding yes` in its sshd_config"
            reason = f"sshd on {target.host} does not allow the forwarding of Unix sockets"
            return NodeUnknownError(Unknown(target.name, UnknownKind.DOCKER_DENIED, reason, hint))
        found = await self.session.run_script(_LOOK, CALL_S, target.docker_socket)
        if "denied" in found.split():
            reason = f"{target.login} may not use the Docker socket {target.docker_socket} on {target.host}"
            hint = f"`sudo usermod -aG docker {target.login}` on {target.host}; it counts from the next login on"
            return NodeUnknownError(Unknown(target.name, UnknownKind.DOCKER_DENIED, reason, hint))
        what = "has no socket" if "missing" in found.split() else "does not answer at"
        reason = f"Docker on {target.host} {what} {target.docker_socket}"
        hint = f"`systemctl status docker` on {target.host}; another socket is set by docker.socket in the spec"
        return NodeUnknownError(Unknown(target.name, UnknownKind.DOCKER_DOWN, reason, hint))


_LOOK = """
if [ ! -e "$1" ]; then echo missing
elif [ -w "$1" ]; then echo silent
else echo denied
fi
"""


def refusal(doing: str, status: int | None, message: str) -> NodeError:
    """Docker's own no: the effect did not happen."""
    return NodeError(KINDS.get(status or 0, ErrorKind.REFUSED), f"Docker refused while {doing}: {message}")


def _explained(body: bytes) -> str:
    try:
        return str(json.loads(body)["message"])
    except (ValueError, KeyError, TypeError):
        return body.decode(errors="replace").strip()
