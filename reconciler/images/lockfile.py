"""`fleet.lock` beside the spec."""

import os
from pathlib import Path

from reconciler.core.lock import NO_LOCK, Lock, LockError
from reconciler.core.lock_text import lock_text, parse_lock

NAME = "fleet.lock"

LARGEST_BYTES = 64 * 2**20
"""A platform of a hundred layers takes 30 kB."""


def read(folder: Path) -> Lock:
    """The lock of the spec in `folder`; an empty one where there is none.

    Raises `LockError` for one that cannot be used, with its file name, and `OSError` where it cannot be read.
    """
    path = folder / NAME
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST_BYTES + 1)
    except FileNotFoundError:
        return NO_LOCK
    if len(data) > LARGEST_BYTES:
        raise LockError(f"{path}: it is larger than {LARGEST_BYTES // 2**20} MiB", "it is not what `fleet pin` wrote")
    try:
        return parse_lock(data.decode())
    except UnicodeDecodeError:
        raise LockError(f"{path}: it is not UTF-8", "`fleet pin --all` writes it anew from the spec") from None
    except LockError as error:
        raise LockError(f"{path}: {error.message}", error.hint) from None


def write(folder: Path, lock: Lock) -> bool:
    """Write the lock whole or not at all; whether that changed it. An empty one is not begun. Raises `OSError`."""
    path = folder / NAME
    path = path.resolve() if path.is_symlink() else path
    text = lock_text(lock).encode()
    if path.read_bytes() == text if path.exists() else not lock.images:
        return False
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with fresh.open("wb") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)
    return True
