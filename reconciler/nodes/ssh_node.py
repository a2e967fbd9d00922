"""One node over SSH: the parts behind the narrow doors, put together."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from reconciler.nodes.containers import SshContainers
from reconciler.nodes.docker_engine import DockerEngine
from reconciler.nodes.docker_sdk import DockerSdk
from reconciler.nodes.engine_access import SshEngines
from reconciler.nodes.images import SshImages
from reconciler.nodes.leases import SshLeases
from reconciler.nodes.models import SshModels
from reconciler.nodes.sockets import SocketPaths
from reconciler.nodes.ssh import SshSession
from reconciler.nodes.ssh_observer import SshObserver

if TYPE_CHECKING:
    from reconciler.nodes.distribution import Distribution
    from reconciler.nodes.openssh import OpenSsh


class SshNode:
    """An open session with one node."""

    def __init__(
        self,
        session: SshSession,
        sockets: SocketPaths,
        distribution: "Callable[[], Distribution]",
        connect: Callable[[], Awaitable[SshSession]],
        ssh: "Callable[[str], OpenSsh]",
    ) -> None:
        self.session = session
        self._engine = DockerEngine(session)
        self._sdk = DockerSdk(self._engine, sockets)
        self._observer = SshObserver(session, self._engine)
        self._containers = SshContainers(self._engine, self._sdk)
        self._images = SshImages(self._engine, self._sdk, distribution, connect)
        self._models = SshModels(session, ssh)
        self._engines = SshEngines(session)
        self._leases = SshLeases(session, self._engine)

    @property
    def name(self) -> str:
        """The node's name in the spec."""
        return self.session.target.name

    @property
    def is_lost(self) -> bool:
        """Whether the connection is gone."""
        return self.session.is_lost

    @property
    def observer(self) -> SshObserver:
        """Reads the node."""
        return self._observer

    @property
    def containers(self) -> SshContainers:
        """Its containers."""
        return self._containers

    @property
    def images(self) -> SshImages:
        """Its images."""
        return self._images

    @property
    def models(self) -> SshModels:
        """Its models."""
        return self._models

    @property
    def engines(self) -> SshEngines:
        """Its engines."""
        return self._engines

    @property
    def leases(self) -> SshLeases:
        """Its lease."""
        return self._leases

    async def close(self) -> None:
        """End the session."""
        await self._sdk.close()
        await self.session.close()
