"""The real fleet: nodes over SSH, images from registries.

Importing this costs nothing: asyncssh comes with the first connection, the docker SDK with the first effect.
"""

import asyncio
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from reconciler.nodes.errors import NodeUnknownError
from reconciler.nodes.registry import RegistrySources
from reconciler.nodes.sockets import SocketPaths
from reconciler.nodes.targets import SshTarget, silent

if TYPE_CHECKING:
    from reconciler.nodes.ssh_node import SshNode
    from specs import Spec

STAGE_CONNECT_S = 20.0


class SshFleet:
    """All nodes of a fleet. `endpoints` maps a registry's host to the URL where the controller reaches it."""

    def __init__(self, targets: Iterable[SshTarget], endpoints: Mapping[str, str] | None = None) -> None:
        self._targets = {target.name: target for target in targets}
        self._endpoints = dict(endpoints or {})
        self._sources = RegistrySources(self._endpoints)
        self._nodes: dict[str, SshNode] = {}
        self._turns = {name: asyncio.Lock() for name in self._targets}
        self._sockets = SocketPaths()

    @classmethod
    def from_spec(cls, spec: "Spec") -> "SshFleet":
        """The real fleet of a spec. Connects to nothing yet."""
        targets = (SshTarget.from_spec(name, node) for name, node in spec.nodes.items())
        return cls(targets, {host: registry.endpoint for host, registry in spec.registries.items()})

    @property
    def sources(self) -> RegistrySources:
        """Where images come from."""
        return self._sources

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
        return SshNode(session, self._sockets, self._endpoints, lambda: ssh.connect(target, STAGE_CONNECT_S))

    async def close(self) -> None:
        """End all sessions."""
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
