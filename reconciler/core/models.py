"""Models as files on nodes: what a rank wants to find, and what was found.

Everything found is as the rank's container would see it: links are followed through the lane's mounts, not through the
node's own folders.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

WEIGHTS = (".safetensors", ".bin", ".pt", ".pth", ".gguf")
"""Endings of files that hold weights."""

SMALL_BYTES = 16 * 2**20
"""Files up to this size are hashed whenever a model is looked at; bigger ones only on demand and after a copy."""

PARTIAL = ".fleet-partial"
"""What a copy that is not whole yet has behind its name: it is never taken for the model."""

_SNAPSHOT = re.compile(r"/snapshots/([0-9a-f]{7,64})(?:/|$)")
_BLOB = re.compile(r"/([0-9a-f]{64})$")
_SPLIT = re.compile(r"(.+)-\d{5}-of-(\d{5})\.gguf$")

There = Literal["folder", "file", "absent", "unseen", "unknown"]


@dataclass(frozen=True)
class Degrees:
    """How a lane splits the model. See `arithmetic.Parallel`."""

    tensor: int = 1
    pipeline: int = 1
    expert: int = 1


@dataclass(frozen=True)
class ModelPlace:
    """Where a model is on a node, and where a container sees it through `mounts` (source and target of each).

    Without mounts it is looked at as the node itself sees it, and `inside` is `path`.
    """

    path: str
    inside: str
    mounts: tuple[tuple[str, str], ...] = ()

    @property
    def base(self) -> str:
        """The mounted folder of the node above it: what it is made of lies below, or the container does not see it."""
        above = [source for source, _ in self.mounts if self.path == source or self.path.startswith(f"{source}/")]
        return max(above, key=len, default=self.path.rpartition("/")[0] or "/")


@dataclass(frozen=True)
class ModelWant:
    """A model that a rank has to find on its node. `verify`: checksums by file below the model's folder.

    `sync`: it may be copied from another node as a part of the plan. `is_mounted` False: no mount of the lane shows it.
    """

    name: str
    place: ModelPlace
    is_draft: bool = False
    is_mounted: bool = True
    revision: str | None = None
    verify: tuple[tuple[str, str], ...] = ()
    sync: bool = False
    degrees: Degrees = Degrees()


@dataclass(frozen=True)
class Shelf:
    """Where a node of a cluster would have a lane's models. `address`: where its neighbours reach it."""

    node: str
    address: str
    wants: tuple[ModelWant, ...]


@dataclass(frozen=True)
class ModelFile:
    """A file of a model, by its path below the model's folder. `digest`: "sha256:...", empty where it was not told.

    `end`: the file of the node that it leads to; empty where it is no link.
    """

    path: str
    bytes: int
    digest: str = ""
    end: str = ""

    @property
    def named_digest(self) -> str:
        """The checksum that the Hugging Face cache names the big file by that it leads to; empty where it has none."""
        match = _BLOB.search(self.end)
        return f"sha256:{match[1]}" if match else ""


@dataclass(frozen=True)
class BadLink:
    """A link that leads nowhere inside the container. `path` is below the model's folder; "" is the model itself.

    `end`: the path of the container where it ends. `is_outside`: no mount is there; else the mounted folder lacks it.
    """

    path: str
    end: str
    is_outside: bool


@dataclass(frozen=True)
class ModelFacts:
    """What is at a place of a node. Sizes in bytes.

    `there`: "unseen" is on the node and not in the container; "unknown" is where the login may not look. `shards`: the
    weight files that indexes name. `incomplete`: downloads beside it that did not end. `config`: the text of its
    `config.json`, bounded. `commit`: what a download wrote down of the revision. `through`: paths of the node outside
    the model's folder that its links lead through, and to. `real`: the folder without links; `base`: the mounted folder
    above it, likewise.
    """

    place: ModelPlace
    there: There
    files: tuple[ModelFile, ...] = ()
    bad_links: tuple[BadLink, ...] = ()
    shards: tuple[str, ...] = ()
    incomplete: int = 0
    config: str = ""
    commit: str = ""
    through: tuple[str, ...] = ()
    real: str = ""
    base: str = ""
    disk_free_bytes: int | None = None
    has_rsync: bool = False

    @property
    def is_there(self) -> bool:
        """Whether there is something that the container sees."""
        return self.there in {"folder", "file"}

    @property
    def is_whole(self) -> bool:
        """Whether it is there, nothing of it is missing, and every link leads somewhere."""
        return self.is_there and not self.missing and not self.bad_links

    @property
    def bytes(self) -> int:
        """What its files add up to."""
        return sum(item.bytes for item in self.files)

    @property
    def by_path(self) -> Mapping[str, ModelFile]:
        """Its files by their path below the folder."""
        return {item.path: item for item in self.files}

    @property
    def missing(self) -> tuple[str, ...]:
        """What it certainly lacks: shards that an index or a split file names; all weights of a download that broke."""
        there = {item.path for item in self.files}
        bad = {item.path for item in self.bad_links}
        lacking = [name for name in (*self.shards, *_splits(there)) if name not in there | bad]
        if not lacking and self.there == "folder" and not self.bad_links and (self.incomplete or not there):
            return () if any(path.endswith(WEIGHTS) for path in there) else ("weights",)
        return tuple(dict.fromkeys(lacking))

    @property
    def revision(self) -> str:
        """The commit it is a snapshot of, by the Hugging Face cache or what a download wrote down; "" unknown."""
        if self.there == "absent":
            return ""
        for path in (f"{self.place.path}/", f"{self.real}/"):
            if match := _SNAPSHOT.search(path):
                return match[1]
        return self.commit


@dataclass(frozen=True)
class ModelCopy:
    """How a model gets from one node to another.

    `address`: where the neighbours of the node `source` reach it, and `peer`: the address of the node that gets it.
    `folder` of the source becomes `target`; `files` of it alone, unless there are none. `through`: paths below
    `base` of the source that links lead to or through, and that come to lie below `target_base` likewise.
    """

    source: str
    address: str
    peer: str
    base: str
    folder: str
    target_base: str
    target: str
    bytes: int
    files: tuple[str, ...] = ()
    through: tuple[str, ...] = ()
    is_begun: bool = False

    @property
    def arrives(self) -> str:
        """The folder that files come to: the model's own where a part of it is there, else one beside it.

        Single files come to a folder in theirs: what is beside that may be another disk.
        """
        if self.files:
            return f"{self.target}/{PARTIAL}"
        return self.target if self.is_begun else f"{self.target}{PARTIAL}"


def _splits(there: set[str]) -> list[str]:
    """The parts of GGUF files that are split, as the parts that are there count them."""
    found: list[str] = []
    for path in sorted(there):
        if match := _SPLIT.match(path):
            count = int(match[2])
            found += [f"{match[1]}-{number:05}-of-{match[2]}.gguf" for number in range(1, min(count, 1000) + 1)]
    return found


def same_revision(one: str, other: str) -> bool:
    """Whether two commits are the same, as far as the shorter one says."""
    return one.startswith(other) or other.startswith(one)
