"""Offers a registry of the controller's side on a node's loopback, while images are being brought there."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import asyncssh

from reconciler.nodes import facts
from reconciler.nodes.endpoints import Endpoint, is_loopback
from reconciler.nodes.errors import ErrorKind, NodeError
from reconciler.nodes.ssh import SshSession

LISTEN_TRIES = 6
LISTEN_PAUSE_S = 0.5
"""A port given back a moment ago may still be held by the sshd of the connection that ended."""

CHECK_S = 20.0


@dataclass
class _Open:
    endpoint: Endpoint
    session: SshSession
    users: int = 1


class RegistryDoors:
    """The forwards to one node, shared by all that use the same endpoint at the same time.

    Each has an SSH connection of its own: gigabytes on the common one would make every other answer wait behind them,
    and its end takes the forward down whatever happened.
    """

    def __init__(self, connect: Callable[[], Awaitable[SshSession]]) -> None:
        self._connect = connect
        self._open: dict[int, _Open] = {}
        self._change = asyncio.Condition()

    @asynccontextmanager
    async def to(self, endpoint: Endpoint) -> AsyncIterator[None]:
        """The endpoint answers on `127.0.0.1:listen_port` of the node inside the block; waits for its turn there."""
        await self._enter(endpoint)
        try:
            yield
        finally:
            await asyncio.shield(self._leave(endpoint.listen_port))

    async def _enter(self, endpoint: Endpoint) -> None:
        port = endpoint.listen_port
        async with self._change:
            await self._change.wait_for(lambda: port not in self._open or self._open[port].endpoint == endpoint)
            if port in self._open:
                self._open[port].users += 1
            else:
                self._open[port] = _Open(endpoint, await self._forwarded(endpoint))

    async def _leave(self, port: int) -> None:
        async with self._change:
            door = self._open[port]
            door.users -= 1
            if door.users == 0:
                del self._open[port]
                await door.session.close()
            self._change.notify_all()

    async def _forwarded(self, endpoint: Endpoint) -> SshSession:
        session = await self._connect()
        try:
            await _listen(session, endpoint)
            await _insist_on_loopback(session, endpoint.listen_port)
        except BaseException:
            await session.close()
            raise
        return session


async def _listen(session: SshSession, endpoint: Endpoint) -> None:
    for _ in range(LISTEN_TRIES):
        try:
            await session.connection.forward_remote_port(
                "127.0.0.1", endpoint.listen_port, endpoint.host, endpoint.port
            )
        except asyncssh.ChannelListenError:
            await asyncio.sleep(LISTEN_PAUSE_S)
        else:
            return
    place = f"127.0.0.1:{endpoint.listen_port} on {session.target.host}"
    hint = "`ss -ltnp` there shows who listens on it; or its sshd_config has `AllowTcpForwarding no`"
    raise NodeError(ErrorKind.CONFLICT, f"sshd cannot listen on {place} to bring images: it is taken", hint)


async def _insist_on_loopback(session: SshSession, port: int) -> None:
    """With `GatewayPorts yes`, sshd listens on every address, whatever was asked: then the network could pull too."""
    output = await session.run_script(facts.SCRIPT, CHECK_S)
    found = facts.parse(output)
    addresses = [item.address for item in found.listeners if item.port == port] if found else []
    if all(is_loopback(address) for address in addresses):
        return
    message = f"sshd on {session.target.host} offers port {port} on {', '.join(addresses)} and not on loopback alone"
    hint = "set `GatewayPorts no` (or clientspecified) in its sshd_config"
    raise NodeError(ErrorKind.DENIED, message, hint)
