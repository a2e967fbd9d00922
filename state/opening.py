"""Opens the recorded state of a fleet. The database library is loaded only when there is something to open."""

import errno
import os
from pathlib import Path
from typing import TYPE_CHECKING

from state.errors import StateError, start_anew
from state.location import Location, Postgres
from state.protocol import Store

if TYPE_CHECKING:
    from state.database import Database

FILE = "state.db"
FORBIDDEN = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})
BUSY_S = 10.0
"""How long a call waits for another process that writes, in seconds."""


def open_store(location: Location, busy_s: float = BUSY_S) -> Store:
    """The state at `location`, made when absent (folder 0700, file 0600; tables) and proved to be writable.

    One of an earlier version is brought to this one; of a file, a copy is kept beside it. Raises `StateError`, before
    anything is changed, when the state is damaged, locked for longer than `busy_s` seconds, made by a newer version,
    or cannot be reached or written.
    """
    from state.sql import SqlStore  # noqa: PLC0415 - many commands do not need it

    if isinstance(location, Postgres):
        from state.postgres import PostgresDatabase  # noqa: PLC0415 - SQLAlchemy costs 0.25 s

        return SqlStore(PostgresDatabase.open(location, busy_s))
    from state.sqlite import SqliteDatabase  # noqa: PLC0415 - as above

    file = location / FILE
    _make(file)
    return SqlStore(SqliteDatabase.open(file, busy_s))


def read_store(location: Location, busy_s: float = BUSY_S) -> Store | None:
    """The state at `location` for reading only, None when there is none. Creates and changes nothing.

    Raises `StateError` when the state is damaged, unreadable or made by a newer version. Every call that would write
    raises it too.
    """
    if isinstance(location, Postgres):
        from state.postgres import PostgresDatabase  # noqa: PLC0415 - SQLAlchemy costs 0.25 s

        return _store(PostgresDatabase.read(location, busy_s))
    file = location / FILE
    try:
        file.open("rb").close()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise _unusable(file, error) from error
    from state.sqlite import SqliteDatabase  # noqa: PLC0415 - as above

    return _store(SqliteDatabase.read(file, busy_s))


def _store(database: "Database | None") -> Store | None:
    from state.sql import SqlStore  # noqa: PLC0415 - as above

    return SqlStore(database) if database else None


def _make(file: Path) -> None:
    """An empty file is an empty database: it is made by hand only to have its permissions from the first moment."""
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise _unusable(file, error) if file.parent.exists() else _unmakeable(file.parent, error) from error
    try:
        os.close(os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    except OSError as error:
        raise _unusable(file, error) from error


def _unusable(file: Path, error: OSError) -> StateError:
    if file.parent.exists() and not file.parent.is_dir():
        return StateError(f"the state {file} cannot be opened: {file.parent} is no folder", start_anew(file.parent))
    what = f"the state {file} cannot be opened: {(error.strerror or str(error)).lower()}"
    if error.errno in FORBIDDEN:
        return StateError(what, f"Make {file.parent} and the files in it readable and writable for you.")
    return StateError(what, start_anew(file))


def _unmakeable(folder: Path, error: OSError) -> StateError:
    what = f"cannot create {folder.name} in {folder.parent}: {(error.strerror or str(error)).lower()}"
    hint = (
        f"Nothing was changed. What is done is recorded there, beside the spec: make {folder.parent} writable for you,"
        " or use the spec from a folder of your own."
    )
    return StateError(what, hint)
