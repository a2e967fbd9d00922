"""Where blobs are kept by their digest, and how one is written: piece by piece, kept only when its hash is proved.

Stdlib only, Python 3.8: this text is also run on nodes (`relay.py`).
"""

from __future__ import annotations

import hashlib
import io
import os
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from contextlib import AbstractContextManager


class LastingError(Exception):
    """The blob cannot be had, and another try is of no use."""


class DamagedError(LastingError):
    """What came is not what was asked for."""


def comes_of(error: BaseException | None, kind: type[Exception]) -> bool:
    """Whether the error is of this kind, or was raised because of one that is."""
    return error is not None and (isinstance(error, kind) or comes_of(error.__cause__, kind))


class Draft:
    """A blob that is being written. `offset`: how many bytes are there. `whole`: nothing is missing, and it is kept."""

    def __init__(self, digest: str, file: io.FileIO) -> None:
        self.digest, self.file = digest, file
        self.offset, self.whole = 0, False
        self.hash = hashlib.sha256()

    def write(self, chunk: bytes) -> None:
        """Append. Raises `LastingError` when the disk is full."""
        try:
            self.append(chunk)
        except OSError as error:
            raise LastingError(f"cannot be written: {error.strerror}") from error

    def append(self, chunk: bytes) -> None:
        """The same; raises `OSError`. At positions of its own: readers share the file's."""
        rest = memoryview(chunk)
        while rest:
            count = os.pwrite(self.file.fileno(), rest, self.offset)
            self.hash.update(rest[:count])
            self.offset, rest = self.offset + count, rest[count:]

    def check(self) -> None:
        """Raises `DamagedError` when these are not the bytes of the digest."""
        if not self.whole and self.digest != "sha256:" + self.hash.hexdigest():
            raise DamagedError(f"what came is not {self.digest}")

    def keep(self) -> None:
        """Make it one of the store's blobs; only after `check`."""
        self.whole = True


class Store:
    """Where blobs are. One that cannot be written to has no `begin`."""

    def open(self, digest: str) -> io.FileIO | None:
        """The whole blob, for one reader who closes it; None when it is not here."""
        raise LookupError(digest)

    def begin(self, digest: str) -> AbstractContextManager[Draft]:
        """What is there of a blob that is not whole, to go on with. `DamagedError` inside the block drops it."""
        raise LookupError(digest)

    def discard(self, digest: str) -> None:
        """Forget a blob that has the wrong size."""


class ContentStore(Store):
    """Blobs in the content folders of a containerd (`FOLDER/blobs/sha256/HEX`). Only read."""

    def __init__(self, folders: Iterable[str]) -> None:
        self.folders = [Path(folder, "blobs", "sha256") for folder in folders]

    def open(self, digest: str) -> io.FileIO | None:
        """See `Store`. An empty file is a blob that is not here."""
        for folder in self.folders:
            with suppress(OSError):
                file = io.FileIO(str(folder / digest.partition(":")[2]))
                if os.fstat(file.fileno()).st_size:
                    return file
                file.close()
        return None


class Spool(Store):
    """Blobs in files of `folder` without a name: they go with the process, however it ends."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.drafts: dict[str, Draft] = {}

    def open(self, digest: str) -> io.FileIO | None:
        """See `Store`."""
        draft = self.drafts.get(digest)
        return io.FileIO(os.dup(draft.file.fileno())) if draft and draft.whole else None

    @contextmanager
    def begin(self, digest: str) -> Iterator[Draft]:
        """See `Store`. What an attempt leaves is there for the next."""
        if digest not in self.drafts:
            file = tempfile.TemporaryFile(dir=self.folder, buffering=0)  # noqa: SIM115  (lives as long as the spool)
            self.drafts[digest] = Draft(digest, file)
        try:
            yield self.drafts[digest]
        except DamagedError:
            self.drafts.pop(digest).file.close()
            raise
