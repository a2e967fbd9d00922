"""The image of a lane as a pin of the core."""

import specs
from reconciler.core.desired import ImagePin


def pin_of(image: specs.ImageRef) -> ImagePin:
    """The content that the reference names: what runs is decided by its digest alone."""
    return ImagePin(image.text, image.digest, image.kind, image.registry or None, image.repository or None)
