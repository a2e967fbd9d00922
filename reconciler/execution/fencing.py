"""A node whose every effect is fenced: right before it, the lease of the node is proved to be held.

Reading needs no lease. Whoever changes a node goes through here, so that two controllers never change the same one.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from reconciler.core.desired import ContainerSpec, ImagePin
from reconciler.core.model_stock import FileProof
from reconciler.core.models import ModelCopy, ModelFacts, ModelPlace
from reconciler.core.observed import Container, LocalImage
from reconciler.core.secret_marks import Mark
from reconciler.core.transfer import Relay
from reconciler.nodes.protocols import Containers, EngineAccess, Images, Models, Node, Observer, OnProgress, ProgramEnd

Prove = Callable[[], Awaitable[None]]
"""Raises `NodeError` when the lease is not held."""


class FencedNode:
    """The doors of a node that effects use. `prove` is called right before each effect."""

    def __init__(self, node: Node, prove: Prove) -> None:
        self.name = node.name
        self.observer: Observer = node.observer
        self.engines: EngineAccess = node.engines
        self.containers: Containers = FencedContainers(node.containers, prove)
        self.images: Images = FencedImages(node.images, prove)
        self.models: Models = FencedModels(node.models, prove)


@dataclass(frozen=True)
class FencedContainers:
    """See `protocols.Containers`."""

    containers: Containers
    prove: Prove

    async def inspect(self, ref: str) -> Container | None:
        """See `Containers.inspect`."""
        return await self.containers.inspect(ref)

    async def create(
        self, name: str, spec: ContainerSpec, image_id: str, labels: Mapping[str, str], secrets: Mapping[str, str]
    ) -> str:
        """See `Containers.create`."""
        await self.prove()
        return await self.containers.create(name, spec, image_id, labels, secrets)

    async def start(self, ref: str) -> None:
        """See `Containers.start`."""
        await self.prove()
        await self.containers.start(ref)

    async def stop(self, ref: str, grace_s: float) -> None:
        """See `Containers.stop`."""
        await self.prove()
        await self.containers.stop(ref, grace_s)

    async def rename(self, ref: str, name: str) -> None:
        """See `Containers.rename`."""
        await self.prove()
        await self.containers.rename(ref, name)

    async def remove(self, ref: str) -> None:
        """See `Containers.remove`."""
        await self.prove()
        await self.containers.remove(ref)

    async def logs(self, ref: str, tail: int, since: str = "") -> Sequence[str]:
        """See `Containers.logs`."""
        return await self.containers.logs(ref, tail, since)

    async def run(self, ref: str, words: Sequence[str], timeout_s: float) -> ProgramEnd:
        """See `Containers.run`."""
        await self.prove()
        return await self.containers.run(ref, words, timeout_s)

    async def live_marks(self, ref: str, mark: Mark) -> Mapping[str, str]:
        """See `Containers.live_marks`."""
        return await self.containers.live_marks(ref, mark)

    def follow(self, ref: str, tail: int) -> AsyncIterator[str]:
        """See `Containers.follow`."""
        return self.containers.follow(ref, tail)


@dataclass(frozen=True)
class FencedModels:
    """See `protocols.Models`. `confirm` is called right before each effect."""

    models: Models
    confirm: Prove

    async def look(self, place: ModelPlace, hashes: Collection[str] = ()) -> ModelFacts:
        """See `Models.look`."""
        return await self.models.look(place, hashes)

    async def prove(
        self, folder: str, files: Collection[str], hashes: Collection[str], on_progress: OnProgress
    ) -> Mapping[str, FileProof]:
        """See `Models.prove`."""
        return await self.models.prove(folder, files, hashes, on_progress)

    async def fetch(self, copy: ModelCopy, on_progress: OnProgress) -> None:
        """See `Models.fetch`."""
        await self.confirm()
        await self.models.fetch(copy, on_progress)

    async def adopt(self, copy: ModelCopy) -> None:
        """See `Models.adopt`."""
        await self.confirm()
        await self.models.adopt(copy)


@dataclass(frozen=True)
class FencedImages:
    """See `protocols.Images`."""

    images: Images
    prove: Prove

    async def present(self, pin: ImagePin) -> LocalImage | None:
        """See `Images.present`."""
        return await self.images.present(pin)

    async def stage(
        self, pin: ImagePin, platform: str, on_progress: OnProgress, relay: Relay | None = None
    ) -> LocalImage:
        """See `Images.stage`."""
        await self.prove()
        return await self.images.stage(pin, platform, on_progress, relay)

    async def inventory(self) -> tuple[LocalImage, ...]:
        """See `Images.inventory`."""
        return await self.images.inventory()

    async def remove(self, image: LocalImage) -> None:
        """See `Images.remove`."""
        await self.prove()
        await self.images.remove(image)
