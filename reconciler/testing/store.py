"""The image store of a simulated node: what is listed, which layers are really there, and what a pull would fetch."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from reconciler.core.image_defaults import ImageDefaults
from reconciler.core.lock import LockedLayer
from reconciler.core.observed import LocalImage
from reconciler.nodes.errors import ErrorKind, NodeError
from reconciler.testing.containers import SimContainer
from reconciler.testing.images import SimImage, Store


@dataclass(frozen=True)
class Entry:
    """An image that is listed. Not `attached`: it came by save and load, without its digest."""

    image: SimImage
    usable: bool
    attached: bool
    tagged_at: str


@dataclass(frozen=True)
class Fetch:
    """What a pull does: layers to download, and layers to unpack (some of these were downloaded before)."""

    download: tuple[LockedLayer, ...]
    unpack: tuple[LockedLayer, ...]


class SimStore:
    """Images by digest, on a node of one platform. `deleted`: diff ids of layers whose files are gone.

    `kept_blobs`: layers of pulls that broke off; only the containerd store keeps those.
    """

    def __init__(self, kind: Store, platform: str, known: Mapping[str, SimImage], now: Callable[[], str]) -> None:
        self.kind = kind
        self.deleted: set[str] = set()
        self.kept_blobs: set[str] = set()
        self._platform = platform
        self._known = known
        self._now = now
        self._entries: dict[str, Entry] = {}

    def load(self, digest: str, *, usable: bool = True, attached: bool = True) -> LocalImage:
        """Have an image; what was missing of it is there again."""
        layers = self._known[digest].layers_for(self._platform) if usable else ()
        self.deleted -= {layer.diff_id for layer in layers}
        self.kept_blobs -= {layer.digest for layer in layers}
        made = Entry(self._known[digest], usable, attached, self._now() if attached else "")
        self._entries[digest] = made
        return _brief(self._listed(made))

    def forget(self, digest: str) -> None:
        """No such image any more."""
        self._entries.pop(digest, None)

    def remove(self, image_id: str, used: Collection[str]) -> None:
        """What `docker rmi` does. `used`: the images of all containers. Raises `NodeError` CONFLICT."""
        if image_id in used:
            raise NodeError(ErrorKind.CONFLICT, f"conflict: unable to remove {image_id}: a container is using it")
        for digest, entry in list(self._entries.items()):
            if self._listed(entry).id == image_id:
                del self._entries[digest]

    def prune(self, used: Collection[str], *, everything: bool) -> None:
        """What `docker image prune` does: the classic store takes what has no name, and `-a` all that is not used."""
        for digest, entry in list(self._entries.items()):
            local = self._listed(entry)
            has_no_name = self.kind == "classic" and not local.names
            if local.id not in used and (everything or has_no_name):
                del self._entries[digest]
        self.kept_blobs.clear()

    def listed(self) -> tuple[LocalImage, ...]:
        """All images, as a list of them tells: without their layers."""
        return tuple(_brief(image) for image in self.inventory())

    def inventory(self) -> tuple[LocalImage, ...]:
        """All images with their layers. One content is one image in the classic store, under whatever digests."""
        found: dict[str, LocalImage] = {}
        for entry in self._entries.values():
            made = self._listed(entry)
            other = found.get(made.id)
            found[made.id] = _merged(other, made) if other else made
        return tuple(found.values())

    def image_of(self, image_id: str) -> SimImage:
        """What a container is made from. Raises `NodeError` NOT_FOUND, also when its content is not there."""
        for entry in self._entries.values():
            local = self._listed(entry)
            if local.id == image_id and local.usable:
                return entry.image
        raise NodeError(ErrorKind.NOT_FOUND, f"No such image: {image_id}")

    def defaults(self, containers: Iterable[SimContainer]) -> tuple[ImageDefaults, ...]:
        """What the images of those that are ours and run give them; nothing of an image that is not there."""
        used = {item.image_id for item in containers if item.is_running and item.owner}
        there = {self._listed(entry).id: entry.image for entry in self._entries.values()} if used else {}
        return tuple(
            ImageDefaults(image_id, env=there[image_id].env, entrypoint=there[image_id].entrypoint)
            for image_id in sorted(used & there.keys())
        )

    def fetch(self, image: SimImage) -> Fetch:
        """What a pull of the image would do."""
        layers = image.layers_for(self._platform)
        if self.kind == "classic" and any(self._is_same(entry, image) for entry in self._entries.values()):
            return Fetch((), ())
        there = set(self._chains())
        ids = tuple(layer.diff_id for layer in layers)
        shared = next((number for number in range(len(ids)) if ids[: number + 1] not in there), len(ids))
        lacking = layers[shared:]
        return Fetch(tuple(layer for layer in lacking if layer.digest not in self.kept_blobs), lacking)

    def _is_same(self, entry: Entry, image: SimImage) -> bool:
        own = entry.image.config_for(self._platform) == image.config_for(self._platform)
        return own and self._is_whole(entry)

    def _is_whole(self, entry: Entry) -> bool:
        return entry.usable and not self.deleted & set(self._diff_ids(entry))

    def _diff_ids(self, entry: Entry) -> tuple[str, ...]:
        return tuple(layer.diff_id for layer in entry.image.layers_for(self._platform))

    def _chains(self) -> Iterator[tuple[str, ...]]:
        """The layers that a pull finds: each as the layers up to it, since a layer is nothing without those below."""
        for entry in self._entries.values():
            if entry.usable and (entry.attached or self.kind == "containerd"):
                ids = tuple(_until(self._diff_ids(entry), self.deleted))
                yield from (ids[: number + 1] for number in range(len(ids)))

    def _listed(self, entry: Entry) -> LocalImage:
        image, is_whole = entry.image, self._is_whole(entry)
        by_content = self.kind == "containerd" and not image.is_local
        has_digest = not image.is_local and (entry.attached or by_content)
        return LocalImage(
            id=image.digest if by_content else image.config_for(self._platform),
            digests=(image.digest,) if has_digest else (),
            names=(image.keep_tag,) if entry.attached and not image.is_local else (),
            usable=is_whole,
            complete=by_content and is_whole and entry.attached,
            diff_ids=self._diff_ids(entry) if entry.usable else (),
            size_bytes=sum(layer.unpacked_bytes or 0 for layer in image.layers_for(self._platform)),
            tagged_at=entry.tagged_at,
        )


def _brief(image: LocalImage) -> LocalImage:
    return replace(image, diff_ids=(), size_bytes=None, tagged_at="")


def _merged(one: LocalImage, other: LocalImage) -> LocalImage:
    digests, names = (*one.digests, *other.digests), (*one.names, *other.names)
    return replace(one, digests=digests, names=names, usable=one.usable or other.usable)


def _until(items: Iterable[str], stops: Collection[str]) -> Iterator[str]:
    for item in items:
        if item in stops:
            return
        yield item
