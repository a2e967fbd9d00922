"""Effects on a node's Docker Engine: the docker SDK on a forwarded Unix socket.

The SDK is imported with the first effect: reading a fleet does without it, and it takes a tenth of a second.
"""

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from reconciler.nodes.docker_engine import CALL_S, DockerEngine, refusal
from reconciler.nodes.sockets import SocketPaths
from reconciler.threads import in_thread

if TYPE_CHECKING:
    import asyncssh
    import docker

T = TypeVar("T")

LONGEST_S = 3600
"""The client's own limit; each call has a closer one. A shorter one here would end a slow start before its deadline."""


class DockerSdk:
    """One client, made with the first call, of the API version that the engine has."""

    def __init__(self, engine: DockerEngine, sockets: SocketPaths) -> None:
        self._engine = engine
        self._sockets = sockets
        self._socket: Path | None = None
        self._opening = asyncio.Lock()
        self._listener: asyncssh.SSHListener | None = None
        self._client: docker.APIClient | None = None

    @property
    def node(self) -> str:
        """The node's name."""
        return self._engine.session.target.name

    async def call(self, doing: str, use: "Callable[[docker.APIClient], T]", deadline_s: float = CALL_S) -> T:
        """What `use` returns, on a thread of its own. Docker's refusals and losses become `NodeError`."""
        import docker.errors  # noqa: PLC0415 - see above
        import requests  # noqa: PLC0415

        try:
            async with asyncio.timeout(deadline_s):
                return await in_thread(partial(use, await self._open()))
        except (TimeoutError, requests.Timeout):
            raise self._engine.late(doing, deadline_s) from None
        except docker.errors.APIError as error:
            raise refusal(doing, error.status_code, str(error.explanation or error).strip()) from error
        except (requests.RequestException, docker.errors.DockerException) as error:
            raise await self._engine.why(doing, error) from error

    async def credentials(self, registry: str | None) -> dict[str, str]:
        """What the controller's own Docker configuration has for a registry, as `docker -H ssh://` would send it."""
        import docker.auth  # noqa: PLC0415 - see above

        look_up = partial(docker.auth.get_config_header, registry=registry)
        header = await self.call(f"looking up the login of {registry}", look_up)
        return {"X-Registry-Auth": header.decode()} if header else {}

    async def _open(self) -> "docker.APIClient":
        async with self._opening:
            session = self._engine.session
            if self._socket is None:
                socket = self._sockets.new()
                path = session.target.docker_socket
                self._listener = await session.connection.forward_local_path(str(socket), path)
                self._socket = socket
            if self._client is None:
                self._client = await in_thread(self._negotiate)
            return self._client

    def _negotiate(self) -> "docker.APIClient":
        import docker  # noqa: PLC0415 - see above

        client = docker.APIClient(base_url=f"unix://{self._socket}", version="auto", timeout=LONGEST_S)
        client.trust_env = False
        return client

    async def close(self) -> None:
        """End the forward."""
        if self._listener is not None:
            self._listener.close()
