"""The narrow door to whoever has blobs: a registry, a node's content store, a folder."""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Protocol


class BlobSource(Protocol):
    """Something that has blobs (manifests, configs, layers) by digest. Blocking: for threads, several at once."""

    @property
    def name(self) -> str:
        """For people: where it is ("https://ghcr.io", "node dgx1")."""
        ...

    def document(self, repository: str, digest: str) -> bytes:
        """A manifest, an index or a config, whole, and verified by its digest. Raises `SupplyError`."""
        ...

    def blob(self, repository: str, digest: str, offset: int = 0) -> AbstractContextManager[Iterator[bytes]]:
        """The bytes of a blob from `offset` on, not verified, as they come. Raises `SupplyError`, also while iterating.

        A source that cannot start in the middle raises one of kind REFUSED for an offset other than 0.
        """
        ...
