"""One SQLite file as a database of the store, for one controller machine."""

import shutil
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from functools import partial
from pathlib import Path

from state.database import Values
from state.errors import StateError
from state.sqlite_file import FREE, FULL, check, damages, readable, touch, translated, writable
from state.statements import VERSION

ROOM_BYTES = 16 * 2**20
"""Free disk space below which no run is begun: some hundred times the journal of a large run."""

Connect = Callable[[], sqlite3.Connection]
Opened = Callable[[], AbstractContextManager[sqlite3.Connection]]


class SqliteTransaction:
    """The `Transaction` protocol on a connection on which one has begun."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection

    def rows(self, statement: str, asked: Values) -> Sequence[Values]:
        """See `Transaction.rows`."""
        found = self.connection.execute(statement, asked)
        names = [column[0] for column in found.description]
        return [dict(zip(names, row, strict=True)) for row in found]

    def change(self, statement: str, *given: Values) -> int:
        """See `Transaction.change`."""
        if len(given) == 1:
            return self.connection.execute(statement, given[0]).rowcount
        return self.connection.executemany(statement, given).rowcount


class SqliteDatabase:
    """The `Database` protocol on one SQLite file. Made by `open` and `read`.

    `connect`: what it makes is kept, and writes, where it may. `opened`: what reads, for one transaction.
    """

    def __init__(self, file: Path, connect: Connect, opened: Opened) -> None:
        self._file = file
        self._connect = connect
        self._opened = opened
        self._writers: dict[str, sqlite3.Connection] = {}

    @classmethod
    def open(cls, file: Path, busy_s: float) -> "SqliteDatabase":
        """For reading and writing; `file` exists, possibly empty. Raises `StateError`."""
        connect = partial(writable, file, busy_s)
        database = cls(file, connect, lambda: closing(connect()))
        try:
            database._prepare(busy_s)
            database.check_writable()
        except StateError:
            database.close()
            raise
        return database

    @classmethod
    def read(cls, file: Path, busy_s: float) -> "SqliteDatabase | None":
        """For reading only; None while the file has no tables yet. Raises `StateError`."""
        connect = partial(readable, file, busy_s)
        database = cls(file, connect, lambda: closing(connect()))
        with database.reading() as transaction:
            version = check(transaction.connection, file)
        if 0 < version < VERSION:
            from state.sqlite_shaping import upgraded_copy  # noqa: PLC0415 - loads SQLAlchemy

            memory = upgraded_copy(file, busy_s)
            return cls(file, lambda: memory, lambda: nullcontext(memory))
        return database if version else None

    def _prepare(self, busy_s: float) -> None:
        """See to it that the file has the tables of this version, and a log."""
        with self.writing() as transaction:
            version = check(transaction.connection, self._file)
        if version < VERSION:
            from state.sqlite_shaping import shape  # noqa: PLC0415 - loads SQLAlchemy

            shape(self._file, busy_s)
        with translated(self._file):
            self._writer("FULL").execute("PRAGMA journal_mode = WAL")

    @contextmanager
    def reading(self) -> Iterator[SqliteTransaction]:
        """See `Database.reading`."""
        with translated(self._file), self._opened() as connection, _begun(connection, "BEGIN"):
            yield SqliteTransaction(connection)

    @contextmanager
    def writing(self) -> Iterator[SqliteTransaction]:
        """See `Database.writing`."""
        with self._kept("FULL") as transaction:
            yield transaction

    @contextmanager
    def noting(self) -> Iterator[SqliteTransaction]:
        """See `Database.noting`."""
        with self._kept("NORMAL") as transaction:
            yield transaction

    @contextmanager
    def _kept(self, sync: str) -> Iterator[SqliteTransaction]:
        with translated(self._file):
            connection = self._writer(sync)
            with _begun(connection, "BEGIN IMMEDIATE"):
                yield SqliteTransaction(connection)

    def _writer(self, sync: str) -> sqlite3.Connection:
        """A connection that stays open: opening one costs more than the statements.

        `sync` FULL: on stable storage when a transaction ends. NORMAL: only together with the next one that is FULL.
        """
        if sync not in self._writers:
            self._writers[sync] = self._connect()
            self._writers[sync].execute(f"PRAGMA synchronous = {sync}")
        return self._writers[sync]

    def check_writable(self) -> None:
        """See `Database.check_writable`: a real write, and room for the ones to come."""
        with self.writing() as transaction:
            touch(transaction.connection)
        if shutil.disk_usage(self._file.parent).free < ROOM_BYTES:
            raise StateError(f"the state {self._file} {FULL}", FREE)

    def damages(self) -> tuple[str, ...]:
        """See `Database.damages`."""
        with self.reading() as transaction:
            return damages(transaction.connection)

    def close(self) -> None:
        """See `Database.close`."""
        for connection in self._writers.values():
            connection.close()


@contextmanager
def _begun(connection: sqlite3.Connection, words: str) -> Iterator[None]:
    """A transaction, all of it or nothing."""
    connection.execute(words)
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # SQLite ends some of them itself, such as on a full disk
            connection.execute("ROLLBACK")
        raise
