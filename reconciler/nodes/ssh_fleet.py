"""The real fleet: nodes over SSH, images from wherever they can be had.

Importing this costs nothing: asyncssh comes with the first connection, the docker SDK with the first effect, what
images need with the first image.
"""

import asyncio
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from reconciler.core.lock import NO_LOCK, Lock
from reconciler.images.supply import Supply
from reconciler.images.vault import Vault, default_vault
from reconciler.nodes.errors import NodeUnknownError
from reconciler.nodes.hooks import ControllerHooks
from reconciler.nodes.sockets import SocketPaths
from reconciler.nodes.targets import SshTarget, silent
from specs import Images

if TYPE_CHECKING:
    from reconciler.nodes.distribution import Distribution
    from reconciler.nodes.ssh_node import SshNode
    from specs import Spec

STAGE_CONNECT_S = 20.0


class SshFleet:
    """All nodes of a fleet. `endpoints` maps a registry's host to the URL where the controller reaches it.

    `from_nodes`: registries that the nodes' own daemons may pull from. `owner`: whose images these are in the vault.
    """

    def __init__(
        self,
        targets: Iterable[SshTarget],
        endpoints: Mapping[str, str] | None = None,
        *,
        images: Images | None = None,
        lock: Lock = NO_LOCK,
        from_nodes: frozenset[str] = frozenset(),
        owner: str = "fleet",
    ) -> None:
        self._targets = {target.name: target for target in targets}
        self._settings = images or Images()
        self._vault = Vault(self._settings.vault or default_vault())
        self._from_nodes = from_nodes
        self._sources = Supply(self._vault, endpoints or {}, lock, from_nodes, owner)
        self._distribution: Distribution | None = None
        self._nodes: dict[str, SshNode] = {}
        self._turns = {name: asyncio.Lock() for name in self._targets}
        self._sockets = SocketPaths()

    @classmethod
    def from_spec(cls, spec: "Spec", lock: Lock = NO_LOCK) -> "SshFleet":
        """The real fleet of a spec. Connects to nothing yet."""
        return cls(
            (SshTarget.from_spec(name, node) for name, node in spec.nodes.items()),
            {host: item.endpoint for host, item in spec.registries.items() if item.endpoint is not None},
            images=spec.images,
            lock=lock,
            from_nodes=frozenset(host for host, item in spec.registries.items() if item.from_nodes),
            owner=spec.fleet,
        )

    @property
    def sources(self) -> Supply:
        """Where images come from."""
        return self._sources

    @property
    def hooks(self) -> ControllerHooks:
        """What this machine calls around a change."""
        return ControllerHooks()

    @property
    def sent_bytes(self) -> int:
        """Bytes of images that left the controller."""
        return self._distribution.sent_bytes if self._distribution else 0

    async def connect(self, node: str, deadline_s: float) -> "SshNode":
        """An open session with `node`. Raises `NodeUnknownError` when it cannot be had within `deadline_s`.

        Sessions are shared: asking again gives the open one, or a new one when that was lost.
        """
        try:
            async with asyncio.timeout(deadline_s), self._turns[node]:
                open_node = self._nodes.get(node)
                if open_node is not None and not open_node.is_lost:
                    return open_node
                self._nodes[node] = await self._connect(self._targets[node], deadline_s)
                return self._nodes[node]
        except TimeoutError:
            raise NodeUnknownError(silent(self._targets[node], deadline_s)) from None

    async def _connect(self, target: SshTarget, deadline_s: float) -> "SshNode":
        _import_asyncssh()
        from reconciler.nodes import ssh  # noqa: PLC0415 - asyncssh takes a tenth of a second and more
        from reconciler.nodes.ssh_node import SshNode  # noqa: PLC0415

        session = await ssh.connect(target, deadline_s)
        return SshNode(
            session,
            self._sockets,
            self._distributing,
            lambda: ssh.connect(target, STAGE_CONNECT_S, ssh.PATIENCE_S),
            lambda name: self._distributing().ssh(name),
        )

    def _distributing(self) -> "Distribution":
        """The controller's side of bringing images, made with the first one."""
        if self._distribution is None:
            from reconciler.nodes.distribution import Distribution  # noqa: PLC0415 - most commands bring none

            self._distribution = Distribution(
                self._sources, self._vault, self._settings, self._targets, self.connect, self._from_nodes
            )
        return self._distribution

    async def close(self) -> None:
        """End all sessions."""
        if self._distribution is not None:
            self._distribution.close()
            self._distribution = None
        await asyncio.gather(*(node.close() for node in self._nodes.values()))
        self._nodes.clear()
        self._sockets.close()


def _import_asyncssh() -> None:
    """Without the search for liboqs, an optional library, for which it would run ldconfig, gcc and ld in each process.

    It costs 30 ms; the post-quantum key exchange that OpenSSH prefers is in `cryptography` as well.
    """
    import ctypes.util  # noqa: PLC0415 - as asyncssh does

    search = ctypes.util.find_library
    ctypes.util.find_library = lambda name: None
    try:
        import asyncssh  # noqa: F401, PLC0415
    finally:
        ctypes.util.find_library = search
