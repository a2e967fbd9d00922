"""One SQLite file: how it is opened, which version it has, and what its failures mean.

Write-ahead log: readers never wait, and a commit is on stable storage when it returns, where that is asked for. The
file has to be on a local disk; the log does not work over NFS.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from state.errors import MisuseError, StateError, start_anew
from state.statements import VERSION

BROKEN = "is damaged, or not a state of this tool"
LOCKED = "is locked by another process that writes"
UNWRITABLE = "cannot be written"
FULL = "cannot be written: the disk is full"
WAIT = "Wait for the other run to end, or end it."
PERMIT = "Make the folder and its files readable and writable for you."
FREE = "Free some disk space."

MEANINGS: dict[int, tuple[str, str]] = {
    sqlite3.SQLITE_CORRUPT: (BROKEN, ""),
    sqlite3.SQLITE_NOTADB: (BROKEN, ""),
    sqlite3.SQLITE_BUSY: (LOCKED, WAIT),
    sqlite3.SQLITE_LOCKED: (LOCKED, WAIT),
    sqlite3.SQLITE_FULL: (FULL, FREE),
    sqlite3.SQLITE_READONLY: (UNWRITABLE, PERMIT),
    sqlite3.SQLITE_CANTOPEN: ("cannot be opened", PERMIT),
    sqlite3.SQLITE_PERM: (UNWRITABLE, PERMIT),
    sqlite3.SQLITE_IOERR: ("cannot be read or written: the disk reports an error", "Look at the disk."),
}
"""What happened and what to do, by SQLite's primary result code."""

SOUND = frozenset({WAIT, PERMIT, FREE})
"""What is to be done where nothing is wrong with the file itself: nobody has to start anew."""


def writable(file: Path, busy_s: float) -> sqlite3.Connection:
    """A connection that reads and writes `file`, which exists."""
    return with_own_transactions(sqlite3.connect(file, timeout=busy_s, check_same_thread=False))


def readable(file: Path, busy_s: float) -> sqlite3.Connection:
    """A connection that only reads, to be made for each transaction, in the way that fits at that moment.

    A merely read-only connection would still create the log's files beside the database. Without a log there is
    nothing to coordinate with, and the file is read as it is.
    """
    log = file.with_name(file.name + "-wal")
    quiet = not log.exists() or log.stat().st_size == 0
    uri = f"file:{quote(str(file.absolute()))}?mode=ro{'&immutable=1' if quiet else ''}"
    return with_own_transactions(sqlite3.connect(uri, uri=True, timeout=busy_s, check_same_thread=False))


def with_own_transactions(connection: sqlite3.Connection) -> sqlite3.Connection:
    """Python's driver begins transactions late and only before writes; here they begin when they are said to."""
    connection.isolation_level = None
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA foreign_keys = ON")
    return connection


def check(connection: sqlite3.Connection, file: Path) -> int:
    """The version of the tables: at most `VERSION`, 0 for an empty file. Raises `StateError` for anything else."""
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    if version > VERSION:
        text = f"the state {file} has version {version}; this version of the tool knows {VERSION}"
        raise StateError(text, start_anew(file, "Upgrade the tool: a newer one made this state."))
    foreign = version == 0 and connection.execute("SELECT 1 FROM sqlite_master WHERE type = 'table'").fetchone()
    if foreign or damages(connection):
        raise StateError(f"the state {file} {BROKEN}", start_anew(file))
    return version


def damages(connection: sqlite3.Connection) -> tuple[str, ...]:
    """What SQLite finds broken inside the file."""
    return tuple(str(line) for (line,) in connection.execute("PRAGMA quick_check") if line != "ok")


def touch(connection: sqlite3.Connection) -> None:
    """Write the version: the smallest real write there is."""
    connection.execute(f"PRAGMA user_version = {VERSION}")


@contextmanager
def translated(file: Path) -> Iterator[None]:
    """Turn the database's errors, by their code, into `StateError`."""
    try:
        yield
    except sqlite3.IntegrityError as error:
        raise MisuseError(f"the state {file} refuses a record: {error}") from error
    except sqlite3.Error as error:
        what, first = MEANINGS.get(_primary_code(error), (f"cannot be used: {error}", ""))
        hint = first if first in SOUND else start_anew(file, first)
        raise StateError(f"the state {file} {what}", hint) from error


def _primary_code(error: sqlite3.Error) -> int:
    """SQLite's primary result code; 0 for errors that the Python driver made itself."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF
