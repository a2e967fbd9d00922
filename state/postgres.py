"""A PostgreSQL database of the store, for several controller machines."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from sqlalchemy import Connection, Engine, TextClause, create_engine, event, inspect, make_url, text, update
from sqlalchemy.exc import DBAPIError, IntegrityError
from sqlalchemy.pool import ConnectionPoolEntry

from state.database import Values
from state.errors import MisuseError, StateError
from state.location import Postgres
from state.migrating import stamp, upgrade
from state.schema import metadata, stamped
from state.statements import VERSION

LOCK = text("SELECT pg_advisory_xact_lock(7021977)")
"""One writer at a time, as SQLite has it: what is recorded has one order, and a migration is alone."""

ASLEEP_S = 10
"""A transaction whose client says nothing for so long (a laptop that sleeps) is ended, and its lock with it."""

ANSWER_S = 4
"""How long the database may be silent: the controller waits for it, and an interrupt has to be heard in time."""

CONNECT: dict[str, Any] = {
    "connect_timeout": 3,
    "tcp_user_timeout": ANSWER_S * 1000,
    "keepalives_idle": 30,
    "application_name": "fleet",
}

MEANINGS = {
    "08": ("cannot be reached", "Check that the database runs and that its URL is right."),
    "25006": ("cannot be written: the database is read only", "Name the one that takes writes."),
    "28": ("refuses this user", "Check user and password: FLEET_STATE, or ~/.pgpass."),
    "3D": ("is not there", "Create the database; its tables are made by the first run."),
    "42501": ("refuses this user", "Grant it the right to use, and to create tables in, the schema."),
    "53": ("cannot be written: the database has no room left", "Free some disk space or connections there."),
    "55P03": ("is locked by another process that writes", "Wait for the other run to end, or end it."),
    "57": ("did not answer in time, or is going down", "Check that the database runs."),
}
"""What happened and what to do, by SQLSTATE or the class of one."""


class PostgresTransaction:
    """The `Transaction` protocol on a connection on which one has begun."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection

    def rows(self, statement: str, asked: Values) -> Sequence[Values]:
        """See `Transaction.rows`."""
        return [dict(row) for row in self.connection.execute(_clause(statement), asked).mappings()]

    def change(self, statement: str, *given: Values) -> int:
        """See `Transaction.change`."""
        return self.connection.execute(_clause(statement), given[0] if len(given) == 1 else given).rowcount


@lru_cache(maxsize=128)
def _clause(statement: str) -> TextClause:
    return text(statement)


class PostgresDatabase:
    """The `Database` protocol on PostgreSQL. Made by `open` and `read`."""

    def __init__(self, location: Postgres, engine: Engine) -> None:
        self._location = location
        self._engine = engine
        self._reader = engine.execution_options(isolation_level="REPEATABLE READ")

    @classmethod
    def open(cls, location: Postgres, busy_s: float) -> "PostgresDatabase":
        """For reading and writing; the tables are made, or brought to this version. Raises `StateError`."""
        database = cls(location, _engine(location, busy_s, read_only=False))
        try:
            with database.writing() as transaction:
                connection = transaction.connection
                version = _version(connection, location)
                if version == 0:
                    metadata.create_all(connection)
                    stamp(connection, VERSION)
                elif version < VERSION:
                    upgrade(connection, version)
            database.check_writable()
        except StateError:
            database.close()
            raise
        return database

    @classmethod
    def read(cls, location: Postgres, busy_s: float) -> "PostgresDatabase | None":
        """For reading only; None while there are no tables. Raises `StateError`."""
        database = cls(location, _engine(location, busy_s, read_only=True))
        with database.reading() as transaction:
            version = _version(transaction.connection, location)
        if 0 < version < VERSION:
            what = f"the state {location} has version {version}; this version of the tool reads {VERSION}"
            raise StateError(what, "The next `fleet apply` brings it forward.")
        return database if version else None

    @contextmanager
    def reading(self) -> Iterator[PostgresTransaction]:
        """See `Database.reading`."""
        with _translated(self._location), self._reader.begin() as connection:
            yield PostgresTransaction(connection)

    @contextmanager
    def writing(self) -> Iterator[PostgresTransaction]:
        """See `Database.writing`."""
        with _translated(self._location), self._engine.begin() as connection:
            connection.execute(LOCK)
            yield PostgresTransaction(connection)

    @contextmanager
    def noting(self) -> Iterator[PostgresTransaction]:
        """See `Database.noting`."""
        with self.writing() as transaction:
            transaction.connection.execute(text("SET LOCAL synchronous_commit = off"))
            yield transaction

    def check_writable(self) -> None:
        """See `Database.check_writable`."""
        with self.writing() as transaction:
            transaction.connection.execute(update(stamped).values(version_num=stamped.c.version_num))

    def damages(self) -> tuple[str, ...]:
        """See `Database.damages`: a server looks after its own files."""
        return ()

    def close(self) -> None:
        """See `Database.close`."""
        self._engine.dispose()


def _engine(location: Postgres, busy_s: float, *, read_only: bool) -> Engine:
    url = make_url(location.url).set(drivername="postgresql+psycopg")
    given = {key: value for key, value in CONNECT.items() if key not in url.query}
    try:
        engine = create_engine(url, connect_args=given, pool_pre_ping=True, hide_parameters=True)
    except ModuleNotFoundError as error:
        hint = "Install it, from a checkout: `pip install '.[postgres]'`."
        raise StateError(f"the state {location} needs the PostgreSQL driver psycopg", hint) from error
    settings = {
        "default_transaction_read_only": "on" if read_only else "off",
        "idle_in_transaction_session_timeout": f"{ASLEEP_S}s",
        "lock_timeout": f"{max(1, int(min(busy_s, ANSWER_S) * 1000))}ms",
        "statement_timeout": f"{ANSWER_S}s",
    }
    told = "; ".join(f"SET {name} = '{value}'" for name, value in settings.items())

    def on_connect(connection: Any, _: ConnectionPoolEntry) -> None:
        connection.execute(told)
        connection.commit()

    event.listen(engine, "connect", on_connect)
    return engine


def _version(connection: Connection, location: Postgres) -> int:
    """The version of the tables: at most `VERSION`, 0 when there are none. Raises `StateError` for anything else."""
    there = set(inspect(connection).get_table_names())
    if stamped.name not in there:
        if taken := sorted(there & set(metadata.tables)):
            what = f"the state {location} has tables of something else: {', '.join(taken)}"
            raise StateError(what, "Name a database or a schema of its own.")
        return 0
    found = str(connection.execute(stamped.select()).scalar())
    if not found.isdigit() or not there >= {"runs", "intents"}:
        raise StateError(
            f"the state {location} has tables of something else", "Name a database or a schema of its own."
        )
    if int(found) > VERSION:
        what = f"the state {location} has version {int(found)}; this version of the tool knows {VERSION}"
        raise StateError(what, "Upgrade the tool: a newer one made this state.")
    return int(found)


@contextmanager
def _translated(location: Postgres) -> Iterator[None]:
    """Turn the database's errors, by their SQLSTATE, into `StateError`. Nothing of a URL's secrets is in them."""
    try:
        yield
    except IntegrityError as error:
        raise MisuseError(f"the state {location} refuses a record: {_line(error.orig, location)}") from error
    except DBAPIError as error:
        code = getattr(error.orig, "sqlstate", None) or "08"
        what, hint = MEANINGS.get(code) or MEANINGS.get(code[:2]) or ("cannot be used", "")
        raise StateError(f"the state {location} {what}: {_line(error.orig, location)}", hint) from error


def _line(error: BaseException | None, location: Postgres) -> str:
    """The first line of what the database said, without the password, wherever it may come from."""
    said = (str(error).strip() or type(error).__name__).splitlines()[0]
    for secret in location.secrets:
        said = said.replace(secret, "***")
    return said
