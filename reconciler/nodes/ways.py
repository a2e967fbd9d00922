"""Ways for an image to a node: a port of the node's loopback that leads to whoever has the bytes, kept open.

A way that breaks is opened again on the same port: dockerd tries again for 50 s on the classic store, and would throw
away all it has when nobody answers by then.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import chain, repeat
from typing import Protocol, TypeVar

from reconciler.nodes.errors import ErrorKind, NodeError
from reconciler.nodes.forwards import Forward, Server
from reconciler.nodes.loopback import insist_on_loopback
from reconciler.nodes.openssh import Child, OpenSsh

S = TypeVar("S")

PAUSES_S = (0.2, 0.4, 0.8, 1.5, 3.0)
"""Before a broken way is tried again: the first time, the second, and from the fifth on the last one."""

LISTEN_TRIES = 6
LISTEN_PAUSE_S = 0.5


class Standing(Protocol):
    """What makes a way stand: an `ssh` child, or whatever else ends."""

    async def ended(self) -> object:
        """Return when it stands no more."""
        ...

    async def close(self) -> None:
        """End it. No effect when it has ended."""
        ...


Open = Callable[[], Awaitable[Standing]]
"""Opens a way, and says so when it stands. Asked again whenever it broke."""


def star(ssh: OpenSsh, listen_port: int, server: Server) -> contextlib.AbstractAsyncContextManager[None]:
    """`127.0.0.1:listen_port` of the node leads to a server of the controller inside the block.

    Raises `NodeError` when it cannot be had: CONFLICT (the port is taken, or forwarding forbidden), DENIED (sshd would
    offer it to the network), `NodeUnknownError` (no way in).
    """
    return kept(lambda: straight(ssh, listen_port, server))


@asynccontextmanager
async def kept(open_way: Open) -> AsyncIterator[None]:
    """The way stands inside the block. Only the first opening may fail; later ones are tried until the block ends."""
    way = _Way(open_way, await at_last(open_way))
    keeper = asyncio.create_task(way.keep())
    try:
        yield
    finally:
        keeper.cancel()
        await asyncio.shield(way.standing.close())


@dataclass
class _Way:
    open: Open
    standing: Standing

    async def keep(self) -> None:
        """Open it again whenever it breaks."""
        while True:
            await self.standing.ended()
            await self.standing.close()
            self.standing = await self._again()

    async def _again(self) -> Standing:
        for pause_s in chain(PAUSES_S, repeat(PAUSES_S[-1])):
            await asyncio.sleep(pause_s)
            with contextlib.suppress(NodeError):
                return await self.open()
        raise AssertionError


async def straight(ssh: OpenSsh, listen_port: int, server: Server) -> Child:
    """The way from the controller itself, checked to be on loopback alone."""
    child = await ssh.open(Forward(listen_port, server))
    try:
        insist_on_loopback(ssh.target, listen_port, child.listeners)
    except NodeError:
        await child.close()
        raise
    return child


async def at_last(open_way: Callable[[], Awaitable[S]]) -> S:
    """A port given back a moment ago may still be held by the sshd of a connection that ended: tried for a while."""
    for _ in range(LISTEN_TRIES - 1):
        try:
            return await open_way()
        except NodeError as error:
            if error.kind is not ErrorKind.CONFLICT:
                raise
        await asyncio.sleep(LISTEN_PAUSE_S)
    return await open_way()
