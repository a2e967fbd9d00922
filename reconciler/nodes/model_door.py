"""The door to a node's models. One of `protocols`."""

from collections.abc import Collection, Mapping
from typing import Protocol

from reconciler.core.model_stock import FileProof
from reconciler.core.models import ModelCopy, ModelFacts, ModelPlace
from reconciler.nodes.progress import OnProgress


class Models(Protocol):
    """The models on a node's disks."""

    async def look(self, place: ModelPlace, hashes: Collection[str] = ()) -> ModelFacts:
        """What is there, as a container sees it; the checksums of these files where they are small. Changes nothing."""
        ...

    async def prove(
        self, folder: str, files: Collection[str], hashes: Collection[str], on_progress: OnProgress
    ) -> Mapping[str, FileProof]:
        """What each of these files below the folder says of itself, and its checksum where it is one of `hashes`.

        Without those that cannot be read. Hashing reads all of them, which may take hours. Changes nothing.
        """
        ...

    async def fetch(self, copy: ModelCopy, on_progress: OnProgress) -> None:
        """Let the files of a model come to `copy.arrives`, from where an earlier try ended. What is there stays.

        Raises `NodeError`: NO_SPACE when the disk is full.
        """
        ...

    async def adopt(self, copy: ModelCopy) -> None:
        """What came takes its place under the model's name; no effect when it did already."""
        ...
