"""Paths for the local ends of forwards: Unix sockets in a folder that only we may enter."""

import contextlib
import itertools
import os
import shutil
import tempfile
import weakref
from pathlib import Path

LONGEST_PATH = 100
"""Bytes that a Unix socket's path may have: 108 on Linux, 104 elsewhere, with room to spare."""

PREFIX = "fleet-sockets-"


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
    """A new folder, with a path short enough for sockets in it. Those that killed processes left are removed."""
    parent = Path(tempfile.gettempdir())
    if len(f"{parent}/{PREFIX}9999999-xxxxxxxx/999999") > LONGEST_PATH:
        parent = Path("/tmp")  # noqa: S108 - mkdtemp makes a folder in it that only we may enter
    remove_left(parent)
    return Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-", dir=parent))


def remove_left(parent: Path) -> None:
    """Remove our own folders in `parent` whose process is gone: SIGKILL lets nobody tidy up."""
    for path in parent.glob(f"{PREFIX}*-*"):
        pid = path.name.removeprefix(PREFIX).partition("-")[0]
        with contextlib.suppress(OSError):
            if pid.isdigit() and path.stat().st_uid == os.getuid() and not _is_alive(int(pid)):
                shutil.rmtree(path, ignore_errors=True)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
