"""Gives a SQLite file its tables, or their present shape. Importing this module loads SQLAlchemy, a quarter of a second
that a file which has its shape does not cost.
"""

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import StaticPool

from state.migrating import stamp, upgrade
from state.schema import metadata
from state.sqlite_file import check, readable, touch, translated, with_own_transactions, writable
from state.statements import VERSION


def shape(file: Path, busy_s: float) -> None:
    """Check `file`, give it its tables when it is new or their present shape when it is old. Raises `StateError`.

    All under the lock of a writer, and in one transaction: of two processes that come at once one finds it done, and
    after a kill everything is as it was.
    """
    with _told(file), closing(writable(file, busy_s)) as raw, _engine(lambda: raw).begin() as connection:
        version = check(raw, file)
        if version == 0:
            metadata.create_all(connection)
            stamp(connection, VERSION)
        elif version < VERSION:
            keep_copy(file, version)
            upgrade(connection, version)
        touch(raw)


def upgraded_copy(file: Path, busy_s: float) -> sqlite3.Connection:
    """A copy in memory, brought to the present version: an old file is read without changing it."""
    memory = sqlite3.connect(":memory:", check_same_thread=False)
    with _told(file):
        with closing(readable(file, busy_s)) as original:
            original.backup(memory)
        with_own_transactions(memory)
        with _engine(lambda: memory).begin() as connection:
            upgrade(connection, check(memory, file))
            touch(memory)
        memory.execute("PRAGMA query_only = ON")
    return memory


def _engine(connect: Callable[[], sqlite3.Connection]) -> Engine:
    """An engine on one connection, whose transactions take the lock of a writer at their beginning."""
    engine = create_engine("sqlite://", creator=connect, poolclass=StaticPool)

    def on_begin(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    event.listen(engine, "begin", on_begin)
    return engine


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


@contextmanager
def _told(file: Path) -> Iterator[None]:
    """The errors of the database, which SQLAlchemy wraps in its own, as `StateError`."""
    with translated(file):
        try:
            yield
        except DBAPIError as error:
            raise (error.orig or error) from error
