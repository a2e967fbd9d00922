"""The controller's own SSH keys, read once for all nodes: reading them for each is a thirtieth of a look at it."""

import copy
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import asyncssh

Version = tuple[str, int, int, int]
"""A file by path, inode, size and time of its last change in nanoseconds; zeros for one that is not there."""


def key_pairs(paths: Sequence[str]) -> list[asyncssh.SSHKeyPair]:
    """The keys of these files, with their certificates; one with a passphrase is left to the agent.

    They are copies, since a connection notes in a key pair what the server takes. Raises `OSError` and
    `asyncssh.KeyImportError`.
    """
    files = [f"{path}{ending}" for path in paths for ending in ("", ".pub", "-cert.pub")]
    return [copy.copy(pair) for pair in _loaded(tuple(paths), tuple(map(_version, files)))]


@lru_cache(maxsize=16)
def _loaded(paths: tuple[str, ...], _versions: tuple[Version, ...]) -> Sequence[asyncssh.SSHKeyPair]:
    """`_versions`: so that a changed file is read again."""
    return asyncssh.load_keypairs(list(paths), ignore_encrypted=True)


def _version(path: str) -> Version:
    try:
        found = Path(path).stat()
    except OSError:
        return path, 0, 0, 0
    return path, found.st_ino, found.st_size, found.st_mtime_ns
