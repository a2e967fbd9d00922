"""A blob of the vault while it is written: the file `HEX.part`, which its writer holds a lock on."""

import errno
import fcntl
import hashlib
import io
import os
import re
from pathlib import Path

from reconciler.images.errors import SupplyError, SupplyErrorKind
from reconciler.images.stores import Draft

SHA256 = re.compile(r"sha256:([0-9a-f]{64})")
FILE_MODE = 0o600  # images may be private
READ_BYTES = 1 << 20
FULL = {errno.ENOSPC, errno.EDQUOT}


class VaultDraft(Draft):
    """A blob that is coming, in a locked file. `offset`: how many bytes are there, hashed."""

    def __init__(self, digest: str, path: Path, file: io.FileIO, whole: bool) -> None:
        super().__init__(digest, file)
        self.path, self.part, self.whole = path, path.with_suffix(".part"), whole
        self.offset = os.fstat(file.fileno()).st_size
        if not whole:
            self.hash = hashed(file)

    def write(self, chunk: bytes) -> None:
        """Append. Raises `SupplyError`, of kind NO_SPACE when the disk is full."""
        try:
            self.append(chunk)
        except OSError as error:
            raise trouble(error, self.path) from error

    def restart(self) -> None:
        """Forget what is there."""
        self.file.truncate(0)
        self.offset, self.hash = 0, hashlib.sha256()

    def keep(self) -> None:
        """Make it a blob of the vault, safe on the disk. Raises `SupplyError`."""
        if self.whole:
            return
        try:
            os.fsync(self.file.fileno())
            self.part.replace(self.path)
            sync_folder(self.path.parent)
        except OSError as error:
            raise trouble(error, self.path) from error
        self.whole = True

    def close(self) -> None:
        """Let others at it: readers may still have the file open, and an untold lock would last as long as they do."""
        fcntl.flock(self.file, fcntl.LOCK_UN)
        self.file.close()


def trouble(error: OSError, place: Path) -> SupplyError:
    """A failure of the file system, told."""
    if error.errno in FULL:
        message, hint = f"no space left for images in {place}", "free some, or set `images.vault` to another disk"
        return SupplyError(SupplyErrorKind.NO_SPACE, message, hint)
    message, hint = f"{place} cannot be used: {error.strerror}", "set `images.vault` to a folder of your own"
    return SupplyError(SupplyErrorKind.REFUSED, message, hint)


def hex_of(digest: str) -> str:
    """The hexadecimal part. Raises `SupplyError` for any digest but SHA-256."""
    found = SHA256.fullmatch(digest)
    if found is None:
        raise SupplyError(SupplyErrorKind.REFUSED, f"{digest} is not a SHA-256 digest")
    return found[1]


def digest_of(data: bytes) -> str:
    """The digest of these bytes."""
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def hashed(file: io.FileIO) -> "hashlib._Hash":
    """The hash of what is in a file."""
    file.seek(0)
    state = hashlib.sha256()
    while chunk := file.read(READ_BYTES):
        state.update(chunk)
    return state


def is_still(path: Path, file: io.FileIO) -> bool:
    """Whether the path leads to this open file."""
    try:
        return os.path.samestat(path.stat(), os.fstat(file.fileno()))
    except FileNotFoundError:
        return False


def sync_folder(folder: Path) -> None:
    """Make a rename in it safe."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
