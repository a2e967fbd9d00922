"""The controller's side of bringing images, shared by all nodes of a fleet: what it knows, has, serves and passes on.

All of it comes with the first image that has to be brought: a plan with nothing to do pays for none.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from reconciler.core.desired import ImagePin
from reconciler.core.observed import LocalImage, Source, SourceImage
from reconciler.core.transfer import Relay
from reconciler.images.errors import SupplyError
from reconciler.images.serving import SocketRegistry
from reconciler.images.supply import FROM_VAULT, Supply
from reconciler.images.vault import Vault
from reconciler.nodes import node_blobs, openssh, ssh
from reconciler.nodes.doors import RegistryDoors
from reconciler.nodes.errors import ErrorKind, NodeError
from reconciler.nodes.inspect import keep_tag
from reconciler.nodes.openssh import OpenSsh
from reconciler.nodes.relays import Relays, Way
from reconciler.nodes.sockets import SocketPaths
from reconciler.nodes.targets import SshTarget
from reconciler.threads import in_thread

if TYPE_CHECKING:
    from reconciler.nodes.ssh_node import SshNode
    from specs import Images

DIAL_S = 20.0
LOOK_S = 10.0
"""Time to ask another node whether it has an image."""


@dataclass(frozen=True)
class Holder:
    """A node that has an image. `reference`: a name its daemon can save it by.

    `can_save`: its daemon can write an archive of it. The containerd store cannot without all compressed blobs, which
    nodes may lack of an image that runs; the classic store always can.
    """

    node: str
    image: LocalImage
    reference: str
    can_save: bool = True


class Distribution:
    """Made once for a fleet. `connect` gives an open session with a node."""

    def __init__(
        self,
        supply: Supply,
        vault: Vault,
        settings: "Images",
        targets: Mapping[str, SshTarget],
        connect: "Callable[[str, float], Awaitable[SshNode]]",
        from_nodes: frozenset[str] = frozenset(),
    ) -> None:
        self.supply = supply
        self.from_nodes = from_nodes
        self._vault = vault
        self._targets = targets
        self._connect = connect
        self._turns = asyncio.Semaphore(settings.parallel)
        self._paths = SocketPaths()
        self._socket = self._paths.new()
        self._registry = SocketRegistry(vault, supply.fetch, settings.bandwidth, self._socket)
        self._ssh: dict[str, OpenSsh] = {}
        self._doors: dict[str, RegistryDoors] = {}
        self._relays = Relays(self.ssh)
        self._asked: dict[str, asyncio.Task[tuple[Holder, ...]]] = {}

    def ssh(self, node: str) -> OpenSsh:
        """The way in for bulk bytes. Raises `NodeError` for a node that the fleet does not have."""
        if node not in self._targets:
            raise NodeError(ErrorKind.NOT_FOUND, f"there is no node {node} in this fleet")
        if node not in self._ssh:
            self._ssh[node] = OpenSsh(self._targets[node])
        return self._ssh[node]

    def turn(self) -> asyncio.Semaphore:
        """A turn among the nodes that are brought images at the same time."""
        return self._turns

    async def described(self, pin: ImagePin, node: str) -> Source:
        """What the sources say of the image: other nodes are asked only where the vault does not have it all."""
        source = await self.supply.describe(pin)
        if isinstance(source, SourceImage) and source.origin == FROM_VAULT:
            return source
        await self.add_holders(pin, but=node)
        return await self.supply.describe(pin)

    async def add_holders(self, pin: ImagePin, but: str) -> bool:
        """Make sources of the other nodes that have all bytes of the image; whether there are any."""
        found = [await self._add(pin, item) for item in await self.holders(pin, but) if item.image.complete]
        return any(found)

    async def _add(self, pin: ImagePin, holder: Holder) -> bool:
        """Its content store becomes a source, where the login may read it."""
        node = await self._connect(holder.node, LOOK_S)
        store = await node.images.store()
        folders = await node_blobs.probe(node.session, store.docker_root)
        if folders:
            self.supply.add_source(pin, node_blobs.NodeBlobs(self.ssh(holder.node), folders))
        return bool(folders)

    async def holders(self, pin: ImagePin, but: str) -> tuple[Holder, ...]:
        """The other nodes that have the image, asked once. A node that cannot be asked has none."""
        if pin.digest not in self._asked:
            self._asked[pin.digest] = asyncio.ensure_future(self._ask(pin))
        return tuple(item for item in await self._asked[pin.digest] if item.node != but)

    async def _ask(self, pin: ImagePin) -> tuple[Holder, ...]:
        found = await asyncio.gather(*(self._holder(node, pin) for node in self._targets))
        return tuple(item for item in found if item is not None)

    async def _holder(self, name: str, pin: ImagePin) -> Holder | None:
        try:
            async with asyncio.timeout(LOOK_S):
                node = await self._connect(name, LOOK_S)
                image, store = await node.images.present(pin), await node.images.store()
        except (NodeError, TimeoutError):
            return None
        if image is None:
            return None
        return Holder(name, image, _reference(image), store.kind == "classic" or image.complete)

    @asynccontextmanager
    async def way(
        self, node: str, pin: ImagePin, blobs: Mapping[str, int], listen_port: int, relay: Relay | None
    ) -> AsyncIterator[Way]:
        """`127.0.0.1:listen_port` of the node has the blobs while the block lasts."""
        self._vault.keep(self.supply.owner, pin.digest)
        self._registry.start()
        if openssh.available():
            way = self._relays.way(node, listen_port, self._socket, relay, blobs)
        else:
            way = self._door(node, listen_port)
        with self._registry.offering(blobs):
            async with way as found:
                yield found

    @asynccontextmanager
    async def _door(self, node: str, listen_port: int) -> AsyncIterator[Way]:
        """Without an `ssh` program here, bulk bytes go through a connection of asyncssh."""
        if node not in self._doors:
            dial = partial(ssh.connect, self._targets[node], DIAL_S, ssh.PATIENCE_S)
            self._doors[node] = RegistryDoors(dial)
        async with self._doors[node].to(listen_port, self._socket):
            yield Way(self.ssh(node), listen_port, self._socket, why="there is no ssh program here")

    async def discard_damaged(self, blobs: Mapping[str, int]) -> bool:
        """Take what went bad out of the vault; whether there was any."""
        return await in_thread(partial(self._discard_damaged, blobs))

    def _discard_damaged(self, blobs: Mapping[str, int]) -> bool:
        bad = [digest for digest in blobs if self._vault.has(digest) and not self._vault.verify(digest)]
        return bool(bad)

    def supply_error(self, blobs: Mapping[str, int]) -> SupplyError | None:
        """Why the controller could not have one of them, the last time it tried."""
        found = (self._registry.last_error(digest) for digest in blobs)
        return next((error for error in found if error is not None), None)

    def is_hopeless(self, blobs: Mapping[str, int]) -> bool:
        """Whether one of them cannot be had now: whoever waits for it waits in vain."""
        return any(self._registry.has_given_up(digest) for digest in blobs)

    @property
    def sent_bytes(self) -> int:
        """Bytes of blobs that left the controller."""
        return self._registry.sent_bytes

    def close(self) -> None:
        """End what is served and passed on."""
        self._registry.close()
        self._paths.close()
        for way_in in self._ssh.values():
            way_in.close()


def _reference(image: LocalImage) -> str:
    """By our own tag, where it has one: the containerd store saves what was asked for by digest without a name."""
    kept = (name for name in image.names if any(name.endswith(f":{keep_tag(digest)}") for digest in image.digests))
    return next(kept, image.names[0] if image.names else image.id)
