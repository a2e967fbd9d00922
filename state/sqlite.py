"""One SQLite file as a database of the store, for one controller machine."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import Connection, Engine

from state.errors import StateError
from state.schema import VERSION
from state.sqlite_file import (
    FREE,
    FULL,
    WRITES,
    check,
    damages,
    prepare,
    reading_engine,
    touch,
    translated,
    upgraded_copy,
    writable_engine,
)

ROOM_BYTES = 16 * 2**20
"""Free disk space below which no run is begun: some hundred times the journal of a large run."""


class SqliteDatabase:
    """The `Database` protocol on one SQLite file. Made by `open` and `read`."""

    def __init__(self, file: Path, engine: Engine) -> None:
        self._file = file
        self._engine = engine
        self._writer = engine.execution_options(**{WRITES: True})
        self._connections: dict[str, Connection] = {}

    @classmethod
    def open(cls, file: Path, busy_s: float) -> "SqliteDatabase":
        """For reading and writing; `file` exists, possibly empty. Raises `StateError`."""
        database = cls(file, writable_engine(file, busy_s))
        try:
            prepare(database._writer, file)
            database.check_writable()
        except StateError:
            database.close()
            raise
        return database

    @classmethod
    def read(cls, file: Path, busy_s: float) -> "SqliteDatabase | None":
        """For reading only; None while the file has no tables yet. Raises `StateError`."""
        database = cls(file, reading_engine(file, busy_s))
        with database.reading() as connection:
            version = check(connection, file)
        if 0 < version < VERSION:
            with translated(file):
                return cls(file, upgraded_copy(file, busy_s))
        return database if version else None

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """See `Database.reading`."""
        with translated(self._file), self._engine.begin() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """See `Database.writing`."""
        with self._kept("FULL") as connection:
            yield connection

    @contextmanager
    def noting(self) -> Iterator[Connection]:
        """See `Database.noting`."""
        with self._kept("NORMAL") as connection:
            yield connection

    @contextmanager
    def _kept(self, sync: str) -> Iterator[Connection]:
        """A transaction on a connection that stays open: taking one from the pool costs as much as the statements.

        `sync` FULL: on stable storage when it ends. NORMAL: only together with the next one that is FULL.
        """
        with translated(self._file):
            if sync not in self._connections:
                self._connections[sync] = self._writer.connect()
                self._connections[sync].connection.cursor().execute(f"PRAGMA synchronous = {sync}")
            with self._connections[sync].begin():
                yield self._connections[sync]

    def check_writable(self) -> None:
        """See `Database.check_writable`: a real write, and room for the ones to come."""
        with self.writing() as connection:
            touch(connection)
        if shutil.disk_usage(self._file.parent).free < ROOM_BYTES:
            raise StateError(f"the state {self._file} {FULL}", FREE)

    def damages(self) -> tuple[str, ...]:
        """See `Database.damages`."""
        with self.reading() as connection:
            return damages(connection)

    def close(self) -> None:
        """See `Database.close`."""
        for connection in self._connections.values():
            connection.close()
        self._engine.dispose()
