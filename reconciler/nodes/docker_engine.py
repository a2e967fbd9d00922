"""The Docker Engine of a node, through its SSH connection: the docker SDK on a forwarded Unix socket."""

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import asyncssh
import docker
import docker.errors
import requests

from reconciler.core.observed import Unknown, UnknownKind
from reconciler.nodes.errors import ErrorKind, NodeError, NodeUnknownError
from reconciler.nodes.ssh import SshSession
from reconciler.nodes.threads import in_thread

T = TypeVar("T")
Use = Callable[[docker.APIClient], T]

CALL_S = 20.0
"""Deadline of an ordinary call. The engine answers within milliseconds unless its disk or the link is in trouble."""

OLDEST_API = "1.41"
"""Given to the reading client to spare it the negotiation; its readings are unversioned and do not use it."""

KINDS = {403: ErrorKind.DENIED, 404: ErrorKind.NOT_FOUND, 409: ErrorKind.CONFLICT}
"""Docker's refusals by HTTP status; all others are REFUSED."""


class DockerEngine:
    """Calls to one engine, each on a thread of its own and with a deadline."""

    def __init__(self, session: SshSession, socket: Path) -> None:
        self.session = session
        self._socket = socket
        self._listener: asyncssh.SSHListener | None = None
        self._opening = asyncio.Lock()
        self._clients: dict[str, docker.APIClient] = {}

    async def get(self, path: str, deadline_s: float = CALL_S, **params: str) -> Any:
        """The JSON of a reading, by the engine's newest API: unversioned, so no negotiation comes before it."""
        read = partial(_read, path=path, params=params, deadline_s=deadline_s)
        return await self._call(f"reading {path}", OLDEST_API, read, deadline_s)

    async def call(self, doing: str, use: Use[T], deadline_s: float = CALL_S) -> T:
        """What `use` returns, run on a thread with a client of the negotiated API version."""
        return await self._call(doing, "auto", use, deadline_s)

    async def _call(self, doing: str, version: str, use: Use[T], deadline_s: float) -> T:
        await self.listen()
        try:
            async with asyncio.timeout(deadline_s):
                return await in_thread(lambda: use(self._client(version)))
        except (TimeoutError, requests.Timeout):
            message = f"Docker on {self.session.target.host} did not answer within {deadline_s:g} s while {doing}"
            raise NodeError(ErrorKind.TIMEOUT, message) from None
        except docker.errors.APIError as error:
            raise refusal(doing, error.status_code, str(error.explanation or error).strip()) from error
        except (requests.RequestException, docker.errors.DockerException) as error:
            raise await self.why(doing, error) from error

    async def listen(self) -> Path:
        """The local end of the forwarded socket."""
        async with self._opening:
            if self._listener is None:
                path = self.session.target.docker_socket
                self._listener = await self.session.connection.forward_local_path(str(self._socket), path)
        return self._socket

    def _client(self, version: str) -> docker.APIClient:
        """Made on the calling thread. Two calls may both make one: then the later stays, and the other serves once."""
        client = self._clients.get(version)
        if client is None:
            client = docker.APIClient(base_url=f"unix://{self._socket}", version=version, timeout=int(CALL_S))
            client.trust_env = False
            self._clients[version] = client
        return client

    async def why(self, doing: str, error: Exception) -> NodeError:
        """The reason behind a connection that ended without an answer: the effect may have happened."""
        target = self.session.target
        if self.session.is_lost:
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

    async def close(self) -> None:
        """End the forward."""
        if self._listener is not None:
            self._listener.close()


_LOOK = """
if [ ! -e "$1" ]; then echo missing
elif [ -w "$1" ]; then echo silent
else echo denied
fi
"""


def _read(client: docker.APIClient, path: str, params: dict[str, str], deadline_s: float) -> Any:
    response = client.get(f"{client.base_url}{path}", params=params, timeout=deadline_s)
    try:
        response.raise_for_status()
    except requests.HTTPError as error:
        raise docker.errors.create_api_error_from_http_exception(error) from error
    return response.json()


def refusal(doing: str, status: int | None, message: str) -> NodeError:
    """Docker's own no: the effect did not happen."""
    return NodeError(KINDS.get(status or 0, ErrorKind.REFUSED), f"Docker refused while {doing}: {message}")
