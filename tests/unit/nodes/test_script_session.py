"""One command on an SSH channel, against a server in this process."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import asyncssh
import pytest

from reconciler.nodes.script_session import output_of

Process = asyncssh.SSHServerProcess[bytes]


class Open(asyncssh.SSHServer):
    """Lets everybody in."""

    def begin_auth(self, username: str) -> bool:
        return False


@asynccontextmanager
async def connection_to(
    serve: Callable[[Process], Coroutine[Any, Any, None]] | None,
) -> AsyncIterator[asyncssh.SSHClientConnection]:
    key = asyncssh.generate_private_key("ssh-ed25519")
    server = await asyncssh.listen(
        "127.0.0.1", 0, server_factory=Open, server_host_keys=[key], process_factory=serve, encoding=None
    )
    options: dict[str, Any] = {"username": "ops", "known_hosts": None, "config": None, "client_keys": None}
    async with server, asyncssh.connect("127.0.0.1", server.get_port(), agent_path=None, **options) as connection:
        yield connection


async def test_what_a_command_is_given_and_what_it_prints() -> None:
    async def serve(process: Process) -> None:
        given = await process.stdin.read()
        process.stderr.write(b"noise")
        process.stdout.write(b"%s: %s, %s" % (str(process.command).encode(), given, process.env["SHLVL"].encode()))
        process.exit(3)

    async with connection_to(serve) as connection:
        printed = await output_of(connection, "sh", b"words" * 20_000, {"SHLVL": "1"})
    assert b"sh: " + b"words" * 20_000 + b", 1" == printed


async def test_a_command_that_ends_without_reading_has_its_output() -> None:
    async def serve(process: Process) -> None:
        process.stdout.write(b"this account is not available")
        process.exit(1)

    async with connection_to(serve) as connection:
        for _ in range(20):  # it may end before or after the words are given
            assert b"this account is not available" == await output_of(connection, "sh", b"words", {})


async def test_a_server_that_runs_no_command_is_an_error() -> None:
    async with connection_to(None) as connection:
        with pytest.raises(asyncssh.ChannelOpenError):
            await output_of(connection, "sh", b"words", {})


async def test_a_connection_that_is_lost_is_an_error() -> None:
    async def serve(process: Process) -> None:
        process.stdout.write(b"half of ")
        process.channel.get_connection().abort()

    async with connection_to(serve) as connection:
        with pytest.raises((asyncssh.ConnectionLost, ConnectionError)):
            await output_of(connection, "sh", b"words", {})


async def test_cancelling_ends_the_channel() -> None:
    ended = asyncio.Event()

    async def serve(process: Process) -> None:
        await process.stdin.read()
        await process.wait_closed()
        ended.set()

    async with connection_to(serve) as connection:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(output_of(connection, "sh", b"words", {}), 0.2)
        await asyncio.wait_for(ended.wait(), 10)
