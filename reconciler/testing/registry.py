"""The simulated image source, as the controller and the nodes see it."""

from collections.abc import Mapping

from reconciler.core.desired import ImagePin
from reconciler.core.observed import Source, SourceImage, SourceMissing, SourceUnknown
from reconciler.nodes.errors import ErrorKind, NodeError
from reconciler.testing.images import SimImage


class SimRegistry:
    """Images by digest. `is_up`, `withdrawn` and `lying` are for tests to change: whether it answers, digests that it
    has no more, and digests under which it has something else.
    """

    def __init__(self, images: Mapping[str, SimImage]) -> None:
        self.is_up = True
        self.withdrawn: set[str] = set()
        self.lying: set[str] = set()
        self._images = images

    def describe(self, pin: ImagePin) -> Source:
        """What it says of a pinned image."""
        if not self.is_up:
            return SourceUnknown(pin.digest, "the registry does not answer")
        if pin.kind == "id":
            return SourceUnknown(pin.digest, "a local build is in no registry")
        image = self._find(pin)
        if image is None:
            return SourceMissing(pin.digest, f"manifest unknown: {pin.reference}")
        return SourceImage(pin.digest, image.bytes_by_platform, image.locked, f"https://{pin.registry}")

    def image_for(self, pin: ImagePin, platform: str) -> SimImage:
        """A pinned image that is built for the platform. Raises `NodeError` when it cannot be had."""
        if not self.is_up:
            raise NodeError(ErrorKind.REFUSED, "the registry does not answer")
        image = self._find(pin)
        if image is None:
            raise NodeError(ErrorKind.NOT_FOUND, f"manifest unknown: {pin.reference}")
        if image.bytes_for(platform) is None:
            raise NodeError(ErrorKind.REFUSED, f"{pin.reference} is not built for {platform}")
        return image

    def _find(self, pin: ImagePin) -> SimImage | None:
        image = self._images.get(pin.digest)
        return None if image is None or image.is_local or pin.digest in self.withdrawn else image
