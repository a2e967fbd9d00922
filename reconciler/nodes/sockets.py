"""Paths for the local ends of forwards: Unix sockets in a folder that only we may enter."""

import itertools
import shutil
import tempfile
import weakref
from pathlib import Path

LONGEST_PATH = 100
"""Bytes that a Unix socket's path may have: 108 on Linux, 104 elsewhere, with room to spare."""


class SocketPaths:
    """New paths, never the same twice. The folder comes with the first one and goes at the latest with the process."""

    def __init__(self) -> None:
        self._numbers = itertools.count()
        self._directory: Path | None = None
        self._removal: weakref.finalize[..., SocketPaths] | None = None

    def new(self) -> Path:
        """A path for a socket."""
        if self._directory is None:
            self._directory = private_directory()
            self._removal = weakref.finalize(self, shutil.rmtree, self._directory, ignore_errors=True)
        return self._directory / str(next(self._numbers))

    def close(self) -> None:
        """Remove the folder with all that is in it."""
        if self._removal is not None:
            self._removal()
        self._directory = None


def private_directory() -> Path:
    """A new folder, with a path short enough for sockets in it."""
    path = Path(tempfile.mkdtemp(prefix="fleet-"))
    if len(str(path)) + len("/999999") <= LONGEST_PATH:
        return path
    path.rmdir()
    return Path(tempfile.mkdtemp(prefix="fleet-", dir="/tmp"))
