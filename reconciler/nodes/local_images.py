"""Reads the images of a node's store."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from reconciler.core.observed import LocalImage
from reconciler.nodes import inspect
from reconciler.nodes.errors import ErrorKind, NodeError

if TYPE_CHECKING:
    from reconciler.nodes.docker_engine import DockerEngine
    from reconciler.nodes.docker_line import DockerLine

    Reading = DockerEngine | DockerLine


async def local_images(
    engine: "Reading", platform: Callable[[], Awaitable[str]], pulled: str | None = None
) -> tuple[LocalImage, ...]:
    """All images; usable is what can run on `platform`. Only an image in doubt costs another call.

    `pulled` is the digest of an image that was pulled just now, without an error.
    """
    entries: list[Mapping[str, Any]] = await engine.get("/images/json", manifests="1")
    own = await platform()
    in_doubt = inspect.doubtful(entries, own, pulled)
    answers = await asyncio.gather(*(_can_run(engine, image) for image in in_doubt))
    runnable = {image for image, answer in zip(in_doubt, answers, strict=True) if answer}
    return inspect.images_from_list(entries, own, runnable)


async def inventory(engine: "Reading", images: tuple[LocalImage, ...]) -> tuple[LocalImage, ...]:
    """The images with their layers, sizes and times; without those that went away meanwhile."""
    found = await asyncio.gather(*(_described(engine, image) for image in images))
    return tuple(image for image in found if image is not None)


async def _described(engine: "Reading", image: LocalImage) -> LocalImage | None:
    try:
        found = await engine.get(f"/images/{image.id}/json")
    except NodeError as error:
        if error.kind is ErrorKind.NOT_FOUND:
            return None
        raise
    return replace(
        image,
        diff_ids=tuple((found.get("RootFS") or {}).get("Layers") or ()),
        tagged_at=str((found.get("Metadata") or {}).get("LastTagTime") or ""),
    )


async def _can_run(engine: "Reading", image: str) -> bool:
    """The history tells the sizes of unpacked layers: none when they are gone (seen with 28.5)."""
    try:
        history = await engine.get(f"/images/{image}/history")
    except NodeError as error:
        if error.is_transport:
            raise
        return False
    return any(int(layer.get("Size") or 0) > 0 for layer in history)
