"""Nodes for those who only want to know what images they have, and to read them."""

from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from reconciler.core.observed import LocalImage, NodeFacts
from reconciler.nodes import protocols
from reconciler.nodes.errors import ErrorKind, NodeError
from tests.unit.images.archives import chunked


@dataclass
class PlayedStore:
    """A node with these images, and the archives of them by id. It is its own session, observer and images."""

    name: str = "dgx1"
    kind: Literal["classic", "containerd"] = "classic"
    images_there: tuple[LocalImage, ...] = ()
    archives: dict[str, bytes] = field(default_factory=dict)
    breaks: bool = False
    closed: bool = False

    @property
    def observer(self) -> "PlayedStore":
        return self

    @property
    def images(self) -> "PlayedStore":
        return self

    async def observe(self, paths: Any = ()) -> NodeFacts:
        return NodeFacts(self.name, "linux/arm64", "boot", self.kind, "29", "/var/lib/docker", None, None, None)

    async def inventory(self) -> tuple[LocalImage, ...]:
        return self.images_there

    async def export(self, reference: str) -> AsyncGenerator[bytes, None]:
        for chunk in chunked(self.archives[reference]):
            yield chunk
        if self.breaks:
            raise NodeError(ErrorKind.REFUSED, "docker save broke off")

    async def connect(self, node: str, deadline_s: float) -> "PlayedStore":
        assert node == self.name
        return self

    async def close(self) -> None:
        self.closed = True


def fleet_of(store: PlayedStore) -> protocols.Fleet:
    """The one node as a fleet."""
    return cast("protocols.Fleet", store)
