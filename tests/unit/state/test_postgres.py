"""The state in PostgreSQL: shared, locked, brought forward; what goes wrong in plain words, and no password in them."""

import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import Connection, create_engine, inspect, make_url, text

from state import MemoryStore, MisuseError, Postgres, StateError, open_store, read_store
from state.migrating import stamp, upgrade
from state.schema import metadata, revision_of, stamped
from state.statements import VERSION
from tests.unit.state.cluster import DATABASE, USER
from tests.unit.state.samples import a_run, fill, intend

PROGRAM = """
import sys
from state import Postgres, open_store
from tests.unit.state.samples import a_run, intend
store = open_store(Postgres(sys.argv[1]))
store.begin_run(a_run(sys.argv[2]))
for _ in range(10):
    store.outcome(sys.argv[2], intend(store, sys.argv[2]), "applied", "", 1.0)
store.close()
"""


def edit(place: Postgres, *statements: str) -> None:
    engine = create_engine(make_url(place.url).set(drivername="postgresql+psycopg"))
    with engine.begin() as connection:
        for statement in statements:
            connection.execute(text(statement))
    engine.dispose()


def step_by_step(connection: Connection) -> None:
    stamped.create(connection)
    upgrade(connection, 0)


def shape(place: Postgres) -> dict[str, list[str]]:
    engine = create_engine(make_url(place.url).set(drivername="postgresql+psycopg"))
    found = inspect(engine)
    columns = {name: [str(column) for column in found.get_columns(name)] for name in metadata.tables}
    engine.dispose()
    return columns


def test_reading_where_no_tables_are_gives_nothing_and_makes_none(postgres: Postgres) -> None:
    assert read_store(postgres) is None
    assert read_store(postgres) is None


def test_what_one_controller_records_another_reads_and_cannot_write_by_reading(postgres: Postgres) -> None:
    writer = open_store(postgres)
    writer.begin_run(a_run())
    reader = read_store(postgres)
    assert reader is not None
    intend(writer)
    assert [entry.sequence for entry in reader.open_entries()] == [1]
    with pytest.raises(StateError, match="read only") as caught:
        reader.begin_run(a_run("r2"))
    assert not isinstance(caught.value, MisuseError)
    reader.close()
    writer.close()


def test_processes_that_make_and_write_one_state_at_once_lose_nothing(postgres: Postgres) -> None:
    command = [sys.executable, "-c", PROGRAM, postgres.url]
    processes = [subprocess.Popen([*command, f"run-{number}"]) for number in range(3)]
    assert [process.wait() for process in processes] == [0, 0, 0]
    store = open_store(postgres)
    assert [len(store.entries(f"run-{number}")) for number in range(3)] == [10, 10, 10]
    assert store.verify() == ()
    store.close()


def test_tables_made_step_by_step_are_those_made_at_once(new_database: Callable[[], Postgres]) -> None:
    stepped, at_once = new_database(), new_database()
    engine = create_engine(make_url(stepped.url).set(drivername="postgresql+psycopg"))
    with engine.begin() as connection:
        step_by_step(connection)
    engine.dispose()
    open_store(at_once).close()
    assert shape(stepped) == shape(at_once)


def test_an_older_version_is_brought_forward_by_writers_only(postgres: Postgres) -> None:
    engine = create_engine(make_url(postgres.url).set(drivername="postgresql+psycopg"))
    with engine.begin() as connection:
        step_by_step(connection)
        for name in ("claims", "holds", "measures", "memories", "quarantines", "reports"):
            connection.execute(text(f"DROP TABLE {name}"))
        connection.execute(text("ALTER TABLE revisions DROP COLUMN spec, DROP COLUMN how"))
        stamp(connection, 1)
    engine.dispose()
    with pytest.raises(StateError, match="has version 1"):
        read_store(postgres)
    store = open_store(postgres)
    fill(store)
    assert store.verify() == ()
    store.close()


def test_a_newer_version_says_to_upgrade(postgres: Postgres) -> None:
    open_store(postgres).close()
    edit(postgres, f"UPDATE alembic_version SET version_num = '{revision_of(VERSION + 1)}'")
    for opening in (open_store, read_store):
        with pytest.raises(StateError, match=f"has version {VERSION + 1}") as caught:
            opening(postgres)
        assert caught.value.hint.startswith("Upgrade the tool")


@pytest.mark.parametrize("other", ["CREATE TABLE runs (id int)", "CREATE TABLE alembic_version (version_num text)"])
def test_tables_of_something_else_are_left_alone(postgres: Postgres, other: str) -> None:
    edit(postgres, other)
    for opening in (open_store, read_store):
        with pytest.raises(StateError, match="tables of something else"):
            opening(postgres)


def test_a_connection_that_broke_between_two_calls_is_made_anew(postgres: Postgres, server: Path) -> None:
    store = open_store(postgres)
    store.begin_run(a_run())
    with psycopg.connect(host=str(server), user=USER, dbname=DATABASE, autocommit=True) as connection:
        others = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'fleet'"
        assert connection.execute(others).fetchall()
    assert intend(store) == 1
    store.close()


def test_a_lock_held_too_long_is_named(postgres: Postgres) -> None:
    open_store(postgres).close()
    engine = create_engine(make_url(postgres.url).set(drivername="postgresql+psycopg"))
    with engine.begin() as connection:
        connection.execute(text("SELECT pg_advisory_xact_lock(7021977)"))
        with pytest.raises(StateError, match="locked by another process") as caught:
            open_store(postgres, busy_s=0.05)
    assert caught.value.hint == "Wait for the other run to end, or end it."
    engine.dispose()


@pytest.mark.parametrize(
    ("edited", "what"),
    [
        (lambda url: url.replace("/postgres?", "/nothing?"), "cannot be reached"),
        (lambda url: url.replace("host=/", "host=/nowhere/"), "cannot be reached"),
        (lambda url: url.replace("fleet:", "nobody:"), "cannot be reached"),
        (lambda url: f"{url}&password=s3cr3t&port=1", "cannot be reached"),
        (lambda url: f"{url}&nonsense=s3cr3t", "cannot be reached"),
    ],
)
def test_what_cannot_be_reached_is_told_without_the_password(
    postgres: Postgres, edited: Callable[[str], str], what: str
) -> None:
    wrong = Postgres(edited(postgres.url))
    for opening in (open_store, read_store):
        with pytest.raises(StateError, match=what) as caught:
            opening(wrong)
        told = "".join(traceback.format_exception(caught.value)) + str(wrong) + repr(wrong)
        assert "s3cr3t" not in told


def test_a_file_goes_into_postgresql_and_back(postgres: Postgres, tmp_path: Path) -> None:
    model = MemoryStore()
    fill(model)
    here, there, back = open_store(tmp_path / "a"), open_store(postgres), open_store(tmp_path / "b")
    here.restore(model.snapshot())
    there.restore(here.snapshot())
    back.restore(there.snapshot())
    assert back.snapshot() == model.snapshot()
    for store in (here, there, back):
        store.close()
