"""The content behind each pinned image, down to its layers: what `fleet pin` resolved, and `fleet.lock` keeps.

All of it follows from the top digest by hashing (OCI image spec: index -> manifest -> config -> diff ids), so whoever
has the bytes can check it. What is told of a node's image is compared with this, never with Docker's `Id` alone.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from reconciler.core.desired import Desired, ImagePin

PUBLISHED = "fleet.invalid"
"""The registry in the names of images that exist in vaults only, put there by `fleet pin --publish`.

RFC 2606 promises that no host is ever called so: nobody can be asked for them by mistake, and nobody can answer.
"""


class LockError(Exception):
    """The lock cannot be used, or says something else than the spec. `hint` is what a person can do."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


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

    `digest`: the index or manifest digest (kind "digest"), or the image id of a local build (kind "id"), of whose one
    platform only the diff ids are known, and the config digest where that is the id. `size_bytes`: of the document of
    that digest, 0 where it is not known.
    """

    name: str
    digest: str
    kind: Literal["digest", "id"]
    platforms: tuple[LockedPlatform, ...]
    size_bytes: int = 0

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
        known = () if image is None else tuple(item.config for item in image.platforms if item.config)
        return replace(pin, configs=known) if known else pin


NO_LOCK = Lock()
"""Nothing is locked: what an image is made of is asked when it is needed."""


def contradictions(lock: Lock, pins: Iterable[ImagePin]) -> tuple[str, ...]:
    """A sentence for each pin whose name is locked, but never with the pin's digest. No entry at all is no fault."""
    locked: dict[str, list[str]] = {}
    for image in lock.images:
        if image.name:
            locked.setdefault(image.name, []).append(image.digest)
    wanted = {pin.reference: pin for pin in pins if pin.kind == "digest"}
    return tuple(
        f"fleet.lock has {name} at {', '.join(locked[name])}, but the spec pins {pin.digest}"
        for reference, pin in sorted(wanted.items())
        if (name := name_of(reference)) in locked and pin.digest not in locked[name]
    )


def name_of(reference: str) -> str:
    """A reference as it is written, without its digest: the name under which it is locked."""
    return reference.rpartition("@")[0]


def insist_on_agreement(lock: Lock, desired: Desired) -> None:
    """Raises `LockError` when the lock contradicts an image of the spec."""
    pins = [rank.container.image for gang in desired.gangs for rank in gang.ranks]
    found = contradictions(lock, pins)
    if found:
        hint = "if the spec is right, `fleet pin LANE` locks what it pins now; else put the locked digest into the spec"
        raise LockError("; ".join(found), hint)
