"""The store in one SQLite file, for one controller machine. Importing this module loads SQLAlchemy."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine, Select, delete, func, insert, null, select, update

from state.checks import Outcome, Snapshot, findings
from state.errors import MisuseError, StateError
from state.records import Entry, Revision, Run
from state.schema import intents, outcomes, revisions, runs
from state.sqlite_file import (
    FREE,
    FULL,
    IMMEDIATE,
    check,
    damages,
    prepare,
    reading_engine,
    touch,
    translated,
    writable_engine,
)

T = TypeVar("T")

ROOM_BYTES = 16 * 2**20
"""Free disk space below which no run is begun: some hundred times the journal of a large run."""

RUN_COLUMNS = [column for column in runs.c if column.name != "ordinal"]
INTENT_COLUMNS = [column for column in intents.c if column.name != "ordinal"]
REVISION_COLUMNS = [column for column in revisions.c if column.name != "ordinal"]
JOURNAL = intents.outerjoin(
    outcomes, (intents.c.run_id == outcomes.c.run_id) & (intents.c.sequence == outcomes.c.sequence)
)
OUTCOME_COLUMNS = [outcomes.c.ended_at, outcomes.c.result, func.coalesce(outcomes.c.detail, "").label("detail")]
ENTRIES: Select[Any] = select(*INTENT_COLUMNS, *OUTCOME_COLUMNS).select_from(JOURNAL).order_by(intents.c.ordinal)


class SqliteStore:
    """The `Store` protocol on one SQLite file. Made by `open` and `read`."""

    def __init__(self, file: Path, engine: Engine) -> None:
        self._file = file
        self._engine = engine
        self._writer = engine.execution_options(**{IMMEDIATE: True})

    @classmethod
    def open(cls, file: Path, busy_s: float) -> "SqliteStore":
        """For reading and writing; `file` exists, possibly empty. Raises `StateError`."""
        store = cls(file, writable_engine(file, busy_s))
        try:
            prepare(store._writer, file)
            store.check_writable()
        except StateError:
            store.close()
            raise
        return store

    @classmethod
    def read(cls, file: Path, busy_s: float) -> "SqliteStore | None":
        """For reading only; None while the file has no tables yet. Raises `StateError`."""
        store = cls(file, reading_engine(file, busy_s))
        with store._reading() as connection:
            version = check(connection, file)
        return store if version else None

    def check_writable(self) -> None:
        """See `Store.check_writable`: a real write, and room for the ones to come."""
        with self._writing() as connection:
            touch(connection)
        if shutil.disk_usage(self._file.parent).free < ROOM_BYTES:
            raise StateError(f"the state {self._file} {FULL}", FREE)

    def begin_run(self, run: Run) -> None:
        """See `Store.begin_run`."""
        with self._writing() as connection:
            connection.execute(insert(runs).values(vars(run)))

    def intent(
        self, run_id: str, step_id: str, gang: str, node: str | None, op: str, target: str, operation: str, at: float
    ) -> int:
        """See `Store.intent`."""
        last = select(func.coalesce(func.max(intents.c.sequence), 0)).where(intents.c.run_id == run_id)
        with self._writing() as connection:
            self._require_active(connection, run_id)
            sequence: int = connection.execute(last).scalar_one() + 1
            entry = Entry(run_id, sequence, step_id, gang, node, op, target, operation, at)
            values = {column.name: getattr(entry, column.name) for column in INTENT_COLUMNS}
            connection.execute(insert(intents).values(values))
        return sequence

    def outcome(self, run_id: str, sequence: int, result: str, detail: str, at: float) -> None:
        """See `Store.outcome`."""
        with self._writing() as connection:
            connection.execute(insert(outcomes).values(vars(Outcome(run_id, sequence, result, detail, at))))

    def end_run(self, run_id: str, exit_code: int, at: float) -> None:
        """See `Store.end_run`."""
        with self._writing() as connection:
            self._require_active(connection, run_id)
            connection.execute(update(runs).where(runs.c.id == run_id).values(ended_at=at, exit_code=exit_code))

    def runs(self, limit: int) -> tuple[Run, ...]:
        """See `Store.runs`."""
        return self._read(Run, select(*RUN_COLUMNS).order_by(runs.c.ordinal.desc()).limit(limit))

    def entries(self, run_id: str) -> tuple[Entry, ...]:
        """See `Store.entries`."""
        return self._read(Entry, ENTRIES.where(intents.c.run_id == run_id))

    def open_entries(self) -> tuple[Entry, ...]:
        """See `Store.open_entries`."""
        return self._read(Entry, ENTRIES.where(outcomes.c.result.is_(null())))

    def confirm(self, revision: Revision) -> None:
        """See `Store.confirm`."""
        same = [revisions.c[name] == getattr(revision, name) for name in ("gang", "number", "run_id")]
        with self._writing() as connection:
            connection.execute(delete(revisions).where(*same))
            connection.execute(insert(revisions).values(vars(revision)))

    def boots(self, gang: str, limit: int) -> tuple[float, ...]:
        """See `Store.boots`."""
        newest = select(revisions.c.boot_s).where(revisions.c.gang == gang).order_by(revisions.c.ordinal.desc())
        with self._reading() as connection:
            return tuple(connection.execute(newest.limit(limit)).scalars())

    def verify(self) -> tuple[str, ...]:
        """See `Store.verify`."""
        with self._reading() as connection:
            snapshot = Snapshot(
                runs=_records(connection, Run, select(*RUN_COLUMNS)),
                intents=_records(connection, Entry, select(*INTENT_COLUMNS)),
                outcomes=_records(connection, Outcome, select(outcomes)),
                revisions=_records(connection, Revision, select(*REVISION_COLUMNS)),
            )
            return damages(connection) + findings(snapshot)

    def close(self) -> None:
        """See `Store.close`."""
        self._engine.dispose()

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        with translated(self._file), self._engine.begin() as connection:
            yield connection

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        with translated(self._file), self._writer.begin() as connection:
            yield connection

    def _read(self, kind: type[T], query: Select[Any]) -> tuple[T, ...]:
        with self._reading() as connection:
            return _records(connection, kind, query)

    def _require_active(self, connection: Connection, run_id: str) -> None:
        active = select(runs.c.ordinal).where(runs.c.id == run_id, runs.c.ended_at.is_(null()))
        if connection.execute(active).first() is None:
            raise MisuseError(f"run {run_id} was never begun, or has ended")


def _records(connection: Connection, kind: Callable[..., T], query: Select[Any]) -> tuple[T, ...]:
    return tuple(kind(**row) for row in connection.execute(query).mappings())
