"""What a node lacks of an image, and what bringing that takes of its disk. Sizes in bytes.

A daemon reuses layers by the content below and up to them, so a node has a layer when one of its images begins with the
same layers; which compressed blobs a store keeps beside that, no daemon tells.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from reconciler.core.desired import ImagePin
from reconciler.core.lock import LockedLayer, LockedPlatform
from reconciler.core.observed import LocalImage, NodeFacts, Observed, SourceImage

Store = Literal["classic", "containerd"]

UNPACKED_PER_BYTE = 2.1
"""An assumption, where nobody tells: a byte of a compressed layer unpacks to so many (29.5 GB from 14.2 GB seen)."""

MARGIN = 0.05
"""Of what an image needs of the disk, so much more is wanted: file systems keep books, too."""


@dataclass(frozen=True)
class Missing:
    """What of one image a node lacks: compressed bytes to fetch, what they unpack to, and layers there of all.

    `layers` is 0 when the image is not known down to its layers: then all of it counts as missing.
    """

    compressed_bytes: int
    unpacked_bytes: int
    layers_shared: int = 0
    layers: int = 0

    @property
    def is_there(self) -> bool:
        """Whether the content is there already, under another name: no layer moves."""
        return self.layers > 0 and self.layers_shared == self.layers

    @property
    def peak_bytes(self) -> int:
        """What it takes of the disk at most, with a margin: what was fetched and what is unpacked, side by side."""
        return round((self.compressed_bytes + self.unpacked_bytes) * (1 + MARGIN))

    def kept_bytes(self, store: Store) -> int:
        """What it takes of the disk for good: the containerd store keeps what was fetched."""
        return self.unpacked_bytes + (self.compressed_bytes if store == "containerd" else 0)


def missing(locked: LockedPlatform, images: Iterable[LocalImage], store: Store) -> Missing:
    """What a store with these images lacks of the image."""
    usable = [image for image in images if image.usable]
    layers = len(locked.layers)
    shared = max((_shared(locked.diff_ids, image.diff_ids) for image in usable if _counts(image, store)), default=0)
    if shared == layers or (store == "classic" and any(image.id == locked.config for image in usable)):
        return Missing(0, 0, layers, layers)
    lacking = locked.layers[shared:]
    blobs = {layer.digest: layer.size_bytes for layer in lacking}
    compressed = locked.config_bytes + sum(blobs.values())
    return Missing(compressed, sum(_unpacked(layer) for layer in lacking), shared, layers)


def missing_on(facts: NodeFacts, pin: ImagePin, observed: Observed) -> Missing | None:
    """What the node lacks of the pinned image; None when the sources say nothing of it for the node's platform."""
    source = observed.sources.get(pin.digest)
    if not isinstance(source, SourceImage):
        return None
    locked = source.image.platform(facts.platform) if source.image else None
    if locked is not None:
        return missing(locked, facts.images, facts.store)
    compressed = dict(source.bytes_by_platform).get(facts.platform)
    return None if compressed is None else Missing(compressed, round(compressed * UNPACKED_PER_BYTE))


def _counts(image: LocalImage, store: Store) -> bool:
    """The classic store learns only by pulls which blob has which content: what was loaded is fetched once more."""
    return store == "containerd" or bool(image.digests)


def _shared(wanted: Sequence[str], there: Sequence[str]) -> int:
    """How many layers from the base upwards are the same."""
    pairs = enumerate(zip(wanted, there, strict=False))
    return next((number for number, (one, other) in pairs if one != other), min(len(wanted), len(there)))


def _unpacked(layer: LockedLayer) -> int:
    return round(layer.size_bytes * UNPACKED_PER_BYTE) if layer.unpacked_bytes is None else layer.unpacked_bytes
