"""The content behind each pinned image, down to its layers: what `fleet pin` resolved, and `fleet.lock` keeps.

All of it follows from the top digest by hashing (OCI image spec: index -> manifest -> config -> diff ids), so whoever
has the bytes can check it. What is told of a node's image is compared with this, never with Docker's `Id` alone.
"""

from dataclasses import dataclass, replace
from typing import Literal

from reconciler.core.desired import ImagePin


@dataclass(frozen=True)
class LockedLayer:
    """A layer: the compressed blob that moves (`digest`, `size_bytes`), and the content it unpacks to (`diff_id`).

    `unpacked_bytes` is None where nobody told it: manifests do not.
    """

    digest: str
    size_bytes: int
    diff_id: str
    unpacked_bytes: int | None = None


@dataclass(frozen=True)
class LockedPlatform:
    """The image of one platform ("linux/arm64"). Sizes in bytes; layers from the base upwards."""

    platform: str
    manifest: str
    manifest_bytes: int
    config: str
    config_bytes: int
    layers: tuple[LockedLayer, ...]

    @property
    def compressed_bytes(self) -> int:
        """What a node without any of it has to fetch: config and layers."""
        return self.config_bytes + sum(layer.size_bytes for layer in self.layers)

    @property
    def diff_ids(self) -> tuple[str, ...]:
        """The content of the layers, from the base upwards: the same in every store and under every compression."""
        return tuple(layer.diff_id for layer in self.layers)


@dataclass(frozen=True)
class LockedImage:
    """One pinned image. `name` is the reference without its digest ("ghcr.io/owner/name:tag"); empty for a local build.

    `digest`: the index or manifest digest (kind "digest"), or the config digest of a local build (kind "id").
    """

    name: str
    digest: str
    kind: Literal["digest", "id"]
    platforms: tuple[LockedPlatform, ...]

    def platform(self, name: str) -> LockedPlatform | None:
        """The image for one platform, None when it is not built for it."""
        return next((item for item in self.platforms if item.platform == name), None)


@dataclass(frozen=True)
class Lock:
    """All locked images of one spec."""

    images: tuple[LockedImage, ...] = ()

    def find(self, digest: str) -> LockedImage | None:
        """The image with this top digest."""
        return next((image for image in self.images if image.digest == digest), None)

    def pinned(self, pin: ImagePin) -> ImagePin:
        """The pin with the config digests of its platforms, by which the classic store knows the same content."""
        image = self.find(pin.digest)
        return pin if image is None else replace(pin, configs=tuple(item.config for item in image.platforms))


NO_LOCK = Lock()
"""Nothing is locked: what an image is made of is asked when it is needed."""
