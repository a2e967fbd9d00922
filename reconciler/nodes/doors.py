"""Offers the controller's registry on a node's loopback where the controller has no `ssh` program: with asyncssh."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import asyncssh

from reconciler.nodes import facts
from reconciler.nodes.forwards import Server
from reconciler.nodes.loopback import insist_on_loopback, taken
from reconciler.nodes.ssh import SshSession

LISTEN_TRIES = 6
LISTEN_PAUSE_S = 0.5
"""A port given back a moment ago may still be held by the sshd of the connection that ended."""

CHECK_S = 20.0


@dataclass
class _Open:
    server: Server
    session: SshSession
    users: int = 1


class RegistryDoors:
    """The forwards to one node, shared by all that use the same port at the same time.

    Each has an SSH connection of its own: gigabytes on the common one would make every other answer wait behind them,
    and its end takes the forward down whatever happened.
    """

    def __init__(self, connect: Callable[[], Awaitable[SshSession]]) -> None:
        self._connect = connect
        self._open: dict[int, _Open] = {}
        self._change = asyncio.Condition()

    @asynccontextmanager
    async def to(self, listen_port: int, server: Server) -> AsyncIterator[None]:
        """`127.0.0.1:listen_port` of the node leads to a server of the controller inside the block."""
        await self._enter(listen_port, server)
        try:
            yield
        finally:
            await asyncio.shield(self._leave(listen_port))

    async def _enter(self, port: int, server: Server) -> None:
        async with self._change:
            await self._change.wait_for(lambda: port not in self._open or self._open[port].server == server)
            if port in self._open:
                self._open[port].users += 1
            else:
                self._open[port] = _Open(server, await self._forwarded(port, server))

    async def _leave(self, port: int) -> None:
        async with self._change:
            door = self._open[port]
            door.users -= 1
            if door.users == 0:
                del self._open[port]
                await door.session.close()
            self._change.notify_all()

    async def _forwarded(self, port: int, server: Server) -> SshSession:
        session = await self._connect()
        try:
            await _listen(session, port, server)
            await _insist_on_loopback(session, port)
        except BaseException:
            await session.close()
            raise
        return session


async def _listen(session: SshSession, port: int, server: Server) -> None:
    for _ in range(LISTEN_TRIES):
        try:
            await _forward(session.connection, port, server)
        except asyncssh.ChannelListenError:
            await asyncio.sleep(LISTEN_PAUSE_S)
        else:
            return
    raise taken(session.target, port)


async def _forward(connection: asyncssh.SSHClientConnection, port: int, server: Server) -> None:
    if isinstance(server, int):
        await connection.forward_remote_port("127.0.0.1", port, "127.0.0.1", server)
    else:
        await connection.forward_remote_port_to_path("127.0.0.1", port, str(server))


async def _insist_on_loopback(session: SshSession, port: int) -> None:
    found = facts.parse(await session.run_script(facts.SCRIPT, CHECK_S))
    insist_on_loopback(session.target, port, found.listeners if found else ())
