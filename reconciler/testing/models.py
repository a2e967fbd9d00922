"""The models on a simulated node's disk."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace

from reconciler.core.model_stock import FileProof
from reconciler.core.models import SMALL_BYTES, ModelCopy, ModelFacts, ModelFile, ModelPlace
from reconciler.testing.images import sha256


def sim_model(files: Mapping[str, int], version: str = "1") -> ModelFacts:
    """A folder with these files (bytes by path). Other content under another `version`."""
    told = tuple(ModelFile(path, count, sha256(f"{version} {path} {count}")) for path, count in sorted(files.items()))
    return ModelFacts(ModelPlace("", ""), "folder", told)


@dataclass
class SimShelf:
    """What is at each path. A path that was never spoken of holds a file; `missing`: those that hold nothing.

    What `look` says of a model beside its files is up to the test: see `ModelFacts`.
    """

    missing: set[str]
    free_bytes: Callable[[], int]
    has_rsync: bool = True
    models: dict[str, ModelFacts] = field(default_factory=dict)
    arrived: set[str] = field(default_factory=set)

    def look(self, place: ModelPlace, hashes: Collection[str] = ()) -> ModelFacts:
        """What is at the place."""
        if place.path in self.missing:
            found = ModelFacts(place, "absent")
        else:
            found = self.models.get(place.path) or _usual(place)
        told = tuple(_told(item, is_asked=item.path in hashes) for item in found.files)
        free = self.free_bytes()
        seen = replace(found, place=place, files=told, disk_free_bytes=free, has_rsync=self.has_rsync)
        folder = place.path if found.there == "folder" else place.path.rpartition("/")[0]
        return replace(seen, real=folder, base=place.base)

    def prove(self, folder: str, files: Collection[str], hashes: Collection[str]) -> Mapping[str, FileProof]:
        """What these files say of themselves, of those that are there."""
        found = self.models.get(folder)
        there = [item for item in (found.files if found else ()) if item.path in files]
        return {item.path: FileProof(item.bytes, item.digest if item.path in hashes else "") for item in there}

    def receive(self, giver: "SimShelf", copy: ModelCopy) -> None:
        """All files have come, to where they wait for their name."""
        for path in (copy.folder, *(f"{copy.folder}/{name}" for name in copy.files)):
            if path in giver.models:
                self.models[path.replace(copy.folder, copy.arrives, 1)] = giver.models[path]
        self.arrived.add(copy.target)

    def adopt(self, copy: ModelCopy) -> None:
        """What came gets its name."""
        if copy.target not in self.arrived:
            return
        self.arrived.discard(copy.target)
        for path in [path for path in self.models if path.startswith(copy.arrives)]:
            self.models[path.replace(copy.arrives, copy.target, 1)] = self.models.pop(path)
        self.missing -= {copy.target, *(f"{copy.target}/{name}" for name in copy.files)}


def _told(item: ModelFile, *, is_asked: bool) -> ModelFile:
    return item if is_asked and item.bytes <= SMALL_BYTES else replace(item, digest="")


def _usual(place: ModelPlace) -> ModelFacts:
    name = place.path.rpartition("/")[2]
    return ModelFacts(place, "file", (ModelFile(name, 4 * 2**20),))
