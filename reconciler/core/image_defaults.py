"""What an image gives each container of it, where nobody asks for anything else.

A container shows it as its own: without knowing it, what a hand added cannot be told from what the image brought.
"""

from dataclasses import dataclass

Settings = tuple[tuple[str, str], ...]
"""Settings by Docker's names ("User", "WorkingDir", "label NAME"), as text; those that are empty are not there."""


@dataclass(frozen=True)
class ImageDefaults:
    """Of one image of a node's store. `image_id`: as containers of it have it."""

    image_id: str
    env: tuple[tuple[str, str], ...] = ()
    entrypoint: tuple[str, ...] | None = None
    settings: Settings = ()
