"""Which way a node's Docker gets the blobs: from the controller, or from a neighbour that passes them on.

A relay saves bytes, nothing hangs on it: whenever it cannot be had, or ends in the middle, the way leads straight to
the controller, on the same port.
"""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial

from reconciler.core.transfer import Relay
from reconciler.nodes.errors import ErrorKind, NodeError
from reconciler.nodes.forwards import Server
from reconciler.nodes.openssh import OpenSsh
from reconciler.nodes.relay_program import Seed, forwarder, seed_at_work
from reconciler.nodes.sharing import Shared
from reconciler.nodes.ways import Standing, kept, straight

FORWARDERS = 3
"""A peer's forwarder that ends as often as this is no use."""

CONTROLLER = "controller"


@dataclass
class Way:
    """An open way to a node. `via`: who sends, "controller" or "relay by NODE". `why`: why it is not the relay."""

    ssh: OpenSsh
    listen_port: int
    server: Server
    seed: Seed | None = None
    via: str = CONTROLLER
    why: str = ""
    forwarders: int = 0

    async def open(self) -> Standing:
        """Open it, or open it again. Raises `NodeError` when even the straight way cannot be had."""
        if self.seed is not None:
            try:
                return await self._by(self.seed)
            except NodeError as error:
                if error.kind is ErrorKind.CONFLICT:
                    raise
                standing = await straight(self.ssh, self.listen_port, self.server)
                self.go_straight(error.message)  # only now: a node that is silent for a while keeps its relay
                return standing
        return await straight(self.ssh, self.listen_port, self.server)

    async def _by(self, seed: Seed) -> Standing:
        if seed.gone.is_set():
            raise NodeError(ErrorKind.REFUSED, f"the relay on {seed.node} ended")
        if seed.node == self.ssh.target.name:
            return _Seat(seed)
        self.forwarders += 1
        if self.forwarders > FORWARDERS:
            raise NodeError(ErrorKind.REFUSED, f"the way to the relay on {seed.node} ended {FORWARDERS} times")
        standing = await forwarder(self.ssh, seed, self.listen_port)
        self.via = f"relay by {seed.node}"
        return standing

    def go_straight(self, why: str) -> None:
        """From now on from the controller."""
        self.seed, self.via, self.why = None, CONTROLLER, why


@dataclass
class _Seat:
    """The seed's own node: its program listens there already, and ends with its last user."""

    seed: Seed

    async def ended(self) -> None:
        await self.seed.gone.wait()

    async def close(self) -> None:
        pass


class Relays:
    """The ways to all nodes of a fleet, each shared by all images that come to its port at the same time.

    `ssh` finds a node's way in by its name.
    """

    def __init__(self, ssh: Callable[[str], OpenSsh]) -> None:
        self._ssh = ssh
        self._ways: Shared[Way] = Shared()
        self._seeds: Shared[Seed] = Shared()

    @asynccontextmanager
    async def way(
        self, node: str, listen_port: int, server: Server, relay: Relay | None, blobs: Mapping[str, int]
    ) -> AsyncIterator[Way]:
        """`127.0.0.1:listen_port` of the node has the blobs (sizes in bytes by digest) inside the block.

        They come from the controller's `server`, through the relay where that can be. An image that
        comes while another is on its way goes the same way. Raises `NodeError` as `star` does.
        """
        make = partial(self._opened, node, listen_port, server, relay, blobs)
        async with self._ways.use((node, listen_port), server, make) as way:
            if way.seed is not None:
                await way.seed.admit(blobs)
            yield way

    @asynccontextmanager
    async def _opened(
        self, node: str, listen_port: int, server: Server, relay: Relay | None, blobs: Mapping[str, int]
    ) -> AsyncIterator[Way]:
        way = Way(self._ssh(node), listen_port, server)
        async with AsyncExitStack() as stack:
            try:
                seed = self._seed(node, listen_port, server, relay, blobs)
                if seed is not None:
                    way.seed = await stack.enter_async_context(seed)
                    await way.seed.admit(blobs, relay.peers if relay else ())
            except NodeError as error:
                way.go_straight(error.message)
            await stack.enter_async_context(kept(way.open))
            yield way

    def _seed(
        self, node: str, listen_port: int, server: Server, relay: Relay | None, blobs: Mapping[str, int]
    ) -> AbstractAsyncContextManager[Seed] | None:
        """The relay's seed. On a node that is a seed just now, for whomever, the port is taken by it: its own."""
        name = node if self._seeds.has((node, listen_port)) else relay.seed if relay else None
        if name is None:
            return None
        make = partial(_started, self._ssh(name), relay, listen_port, server, blobs)
        return self._seeds.use((name, listen_port), server, make)


@asynccontextmanager
async def _started(
    ssh: OpenSsh, relay: Relay | None, listen_port: int, server: Server, blobs: Mapping[str, int]
) -> AsyncIterator[Seed]:
    if relay is None or relay.seed != ssh.target.name:
        raise NodeError(ErrorKind.REFUSED, f"the relay on {ssh.target.name} ended")
    async with seed_at_work(ssh, relay, listen_port, server, blobs) as seed:
        yield seed
