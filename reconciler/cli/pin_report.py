"""What `fleet pin` says of what it pinned, locked and wrote."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import specs
    from reconciler.pinning import Pinned


@dataclass(frozen=True)
class Wish:
    """What to pin: an image as it is written, and the lanes that it is the image of."""

    written: str
    lanes: tuple[str, ...]


@dataclass(frozen=True)
class Granted:
    """A wish and what came of it."""

    wish: Wish
    pinned: "Pinned"


@dataclass(frozen=True)
class Report:
    """A run: what came of it, how many wishes failed, whether the spec was `written` and the lock `changed`.

    `updated`: it was asked what tags are now, also of what was pinned.
    """

    granted: Sequence[Granted]
    failed: int
    texts: "Mapping[str, specs.ImageText]"
    lock: Path
    written: bool
    changed: bool
    updated: bool

    def text(self) -> str:
        """For people; ends with what became of the lock."""
        lines = [line for item in self.granted for line in self._lines(item)]
        return "\n".join([*lines, self._ending()]) + "\n"

    def _ending(self) -> str:
        locked, wanted = sum(item.pinned.image is not None for item in self.granted), len(self.granted) + self.failed
        if wanted > 1 and locked < wanted:
            return f"{locked} of {wanted} locked in {self.lock}"
        return f"locked in {self.lock}" if self.changed else f"{self.lock.name} is as it was"

    def _lines(self, item: Granted) -> Iterator[str]:
        from reconciler.core.figures import size
        from reconciler.views.words import count, one_line

        pinned = item.pinned
        yield pinned.reference
        yield f"  known from {one_line(pinned.origin)}"
        for platform in pinned.image.platforms if pinned.image else ():
            bytes_ = f", {size(platform.compressed_bytes)} to move" if platform.compressed_bytes else ""
            yield f"  {platform.platform}: {count(len(platform.layers), 'layer')}{bytes_}"
        if pinned.remark:
            yield f"  {one_line(pinned.remark)}"
        yield from self._uses(item)

    def _uses(self, item: Granted) -> Iterator[str]:
        """What the lanes of the spec have to do with it."""
        digest = item.pinned.reference.rpartition("@")[2]
        in_use = any(found.text.rpartition("@")[2] == digest for found in self.texts.values())
        if item.wish.written == item.pinned.reference and in_use:
            yield "  already pinned" if self.updated else "  already pinned; `--update` asks what its tag is now"
        elif not item.wish.lanes and not in_use and item.pinned.image is not None:
            yield "  no lane uses it: put it into a lane; `fleet pin --all` forgets it"
        for lane in item.wish.lanes:
            if item.wish.written != item.pinned.reference:
                doing = "written to" if self.written else "put this reference into"
                yield f"  {doing} lanes.{lane}.image, {self.texts[lane].place}"


def as_json_value(item: Granted) -> dict[str, object]:
    """For programs."""
    image = item.pinned.image
    return {
        "written": item.wish.written,
        "lanes": list(item.wish.lanes),
        "reference": item.pinned.reference,
        "origin": item.pinned.origin,
        "remark": item.pinned.remark,
        "locked": image is not None,
        "bytes_by_platform": {one.platform: one.compressed_bytes for one in image.platforms} if image else {},
    }
