"""One SQLite file: how it is opened, which version it has, and what its failures mean.

Write-ahead log: readers never wait, and a commit is on stable storage when it returns, where that is asked for. The
file has to be on a local disk; the log does not work over NFS.
"""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import cast
from urllib.parse import quote

from sqlalchemy import URL, Connection, Engine, create_engine, event, inspect
from sqlalchemy.exc import DBAPIError, IntegrityError
from sqlalchemy.pool import ConnectionPoolEntry, NullPool, StaticPool

from state.errors import MisuseError, StateError, start_anew
from state.migrating import stamp, upgrade
from state.schema import VERSION, metadata

WRITES = "fleet_writes"
"""Execution option of an engine whose transactions write, and take the lock for it at their beginning."""

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


def writable_engine(file: Path, busy_s: float) -> Engine:
    """An engine whose connections read and write `file`, which exists."""
    engine = create_engine(URL.create("sqlite", database=str(file)), connect_args={"timeout": busy_s})
    return _with_own_transactions(engine)


def reading_engine(file: Path, busy_s: float) -> Engine:
    """An engine that only reads. Each transaction opens the file anew, in the way that fits at that moment.

    A merely read-only connection would still create the log's files beside the database. Without a log there is
    nothing to coordinate with, and the file is read as it is.
    """

    def connect() -> sqlite3.Connection:
        log = file.with_name(file.name + "-wal")
        quiet = not log.exists() or log.stat().st_size == 0
        uri = f"file:{quote(str(file.absolute()))}?mode=ro{'&immutable=1' if quiet else ''}"
        return sqlite3.connect(uri, uri=True, timeout=busy_s, check_same_thread=False)

    return _with_own_transactions(create_engine("sqlite://", creator=connect, poolclass=NullPool))


def upgraded_copy(file: Path, busy_s: float) -> Engine:
    """An engine on a copy in memory, brought to the present version: an old file is read without changing it."""
    memory = sqlite3.connect(":memory:", check_same_thread=False)
    original = reading_engine(file, busy_s).raw_connection()
    cast("sqlite3.Connection", original.driver_connection).backup(memory)
    original.close()
    engine = _with_own_transactions(create_engine("sqlite://", creator=lambda: memory, poolclass=StaticPool))
    with engine.begin() as connection:
        upgrade(connection, check(connection, file))
        touch(connection)
    with engine.connect() as connection:
        connection.exec_driver_sql("PRAGMA query_only = ON")
    return engine


def _with_own_transactions(engine: Engine) -> Engine:
    """Python's driver begins transactions late and only before writes; here they begin when they are said to."""

    def on_connect(connection: sqlite3.Connection, _: ConnectionPoolEntry) -> None:
        connection.isolation_level = None
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")

    def on_begin(connection: Connection) -> None:
        writes = connection.get_execution_options().get(WRITES, False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    event.listen(engine, "connect", on_connect)
    event.listen(engine, "begin", on_begin)
    return engine


def prepare(writer: Engine, file: Path) -> None:
    """Check `file`, give it its tables when it is new or their present shape when it is old, and turn its log on.

    All under the lock of a writer, and in one transaction: of two processes that come at once one finds it done, and
    after a kill everything is as it was.
    """
    with translated(file):
        with writer.begin() as connection:
            version = check(connection, file)
            if version == 0:
                metadata.create_all(connection)
                stamp(connection, VERSION)
            elif version < VERSION:
                keep_copy(file, version)
                upgrade(connection, version)
            touch(connection)
        raw = writer.raw_connection()
        raw.cursor().execute("PRAGMA journal_mode = WAL")
        raw.close()


def keep_copy(file: Path, version: int) -> Path:
    """A copy of the file as it is before it gets another shape, beside it. Kept until a person deletes it."""
    names = (file.with_name(f"{file.name}.v{version}{suffix}") for suffix in ("", *(f".{n}" for n in range(2, 100))))
    copy = next(name for name in names if not name.exists())
    draft = file.with_name(f"{copy.name}.{os.getpid()}")
    os.close(os.open(draft, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600))
    with closing(sqlite3.connect(file)) as source, closing(sqlite3.connect(draft)) as target:
        source.backup(target)
    draft.replace(copy)
    return copy


def check(connection: Connection, file: Path) -> int:
    """The version of the tables: at most `VERSION`, 0 for an empty file. Raises `StateError` for anything else."""
    version = int(connection.exec_driver_sql("PRAGMA user_version").scalar_one())
    if version > VERSION:
        text = f"the state {file} has version {version}; this version of the tool knows {VERSION}"
        raise StateError(text, start_anew(file, "Upgrade the tool: a newer one made this state."))
    foreign = version == 0 and inspect(connection).get_table_names()
    if foreign or damages(connection):
        raise StateError(f"the state {file} {BROKEN}", start_anew(file))
    return version


def damages(connection: Connection) -> tuple[str, ...]:
    """What SQLite finds broken inside the file."""
    lines = (str(line) for line in connection.exec_driver_sql("PRAGMA quick_check").scalars())
    return tuple(line for line in lines if line != "ok")


def touch(connection: Connection) -> None:
    """Write the version: the smallest real write there is."""
    connection.exec_driver_sql(f"PRAGMA user_version = {VERSION}")


@contextmanager
def translated(file: Path) -> Iterator[None]:
    """Turn the database's errors, by their code, into `StateError`."""
    try:
        yield
    except IntegrityError as error:
        raise MisuseError(f"the state {file} refuses a record: {error.orig}") from error
    except (DBAPIError, sqlite3.Error) as error:
        cause = error.orig if isinstance(error, DBAPIError) else error
        what, first = MEANINGS.get(_primary_code(cause), (f"cannot be used: {cause}", ""))
        hint = first if first in SOUND else start_anew(file, first)
        raise StateError(f"the state {file} {what}", hint) from error


def _primary_code(error: BaseException | None) -> int:
    """SQLite's primary result code; 0 for errors that the Python driver made itself."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF
