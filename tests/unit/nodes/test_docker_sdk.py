"""Effects by the docker SDK: the deadline of a call is the only one there is."""

import asyncio
from typing import Any, cast

import pytest

from reconciler.nodes import docker_sdk
from reconciler.nodes.docker_engine import DockerEngine
from reconciler.nodes.docker_sdk import DockerSdk
from reconciler.nodes.errors import ErrorKind, NodeError
from reconciler.nodes.sockets import SocketPaths

SLOW_S = 1.5


class SlowDocker:
    """In place of a node's engine: says its version at once, and takes its time to start a container."""

    def __init__(self) -> None:
        self.session = cast("Any", self)
        self.target = cast("Any", self)
        self.connection = cast("Any", self)
        self.docker_socket = "unused"

    async def forward_local_path(self, path: str, _remote: str) -> asyncio.Server:
        return await asyncio.start_unix_server(self._serve, path)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = await reader.readuntil(b"\r\n\r\n")
        if b"/version" in request:
            body = b'{"ApiVersion": "1.41"}'
        else:
            await asyncio.sleep(SLOW_S)
            body = b""
        head = f"HTTP/1.1 {200 if body else 204} OK\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        writer.write(head.encode() + body)
        writer.close()

    def late(self, doing: str, deadline_s: float) -> NodeError:
        return NodeError(ErrorKind.TIMEOUT, f"{doing}: {deadline_s:g} s")


async def test_a_slow_start_has_its_own_deadline_and_not_that_of_a_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(docker_sdk, "CALL_S", 1.0)
    sockets = SocketPaths()
    sdk = DockerSdk(cast("DockerEngine", SlowDocker()), sockets)
    try:
        await sdk.call("starting x", lambda api: api.start("x"), 10.0)
        with pytest.raises(NodeError, match=r"starting x: 0\.3 s"):
            await sdk.call("starting x", lambda api: api.start("x"), 0.3)
    finally:
        await sdk.close()
        sockets.close()
