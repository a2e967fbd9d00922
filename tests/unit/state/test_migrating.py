"""States of released versions are taken over: whole or not at all, by one process at a time, with a copy kept."""

import os
import signal
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, create_engine

from state import StateError, open_store, read_store
from state.migrating import SCRIPTS, stamp, upgrade
from state.schema import metadata, revision_of, stamped
from state.statements import VERSION
from tests.unit.state.samples import a_hold, a_measure, a_run, intend

RELEASED = Path(__file__).parents[2] / "fixtures" / "state"

OPEN = "import sys; from pathlib import Path; from state import open_store; open_store(Path(sys.argv[1])).close()"
DIE_AT_THE_END = f"import os, signal, state.sqlite_shaping as f; f.touch = lambda c: os.kill(os.getpid(), 9); {OPEN}"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A state as release 0.1.0 left it."""
    folder = tmp_path / ".fleet"
    folder.mkdir(mode=0o700)
    connection = sqlite3.connect(folder / "state.db")
    connection.executescript((RELEASED / "v1.sql").read_text())
    connection.close()
    return folder


def version_of(file: Path) -> int:
    connection = sqlite3.connect(file)
    found: int = connection.execute("PRAGMA user_version").fetchone()[0]
    connection.close()
    return found


def test_every_version_has_one_step_and_the_last_is_this_one() -> None:
    steps = list(ScriptDirectory(str(SCRIPTS)).walk_revisions())
    assert [step.revision for step in reversed(steps)] == [revision_of(number) for number in range(1, VERSION + 1)]


def test_the_state_of_the_first_release_is_taken_over_with_all_it_has(folder: Path) -> None:
    store = open_store(folder)
    assert [(run.id, run.exit_code) for run in store.runs(9)] == [("r2", None), ("r1", 0)]
    assert [entry.result for entry in store.entries("r1")] == ["applied", "applied"]
    assert [entry.run_id for entry in store.open_entries()] == ["r2"]
    assert [(item.boot_s, item.spec, item.how) for item in store.revisions(None, 9)] == [(12.5, "", "apply")]
    store.place_hold(a_hold())
    store.measure((a_measure(run="r2"),))
    assert store.measures(1) == (a_measure(run="r2"),)
    assert intend(store, "r2") == 2
    store.add_report(5.0, "a report")
    store.remember("agent", "what it did")
    assert (((5.0, "a report"),), "what it did") == (store.reports(9), store.recall("agent"))
    assert store.verify() == ()
    store.close()


def test_a_copy_is_kept_as_it_was(folder: Path) -> None:
    before = list(sqlite3.connect(folder / "state.db").iterdump())
    open_store(folder).close()
    open_store(folder).close()
    copies = [item for item in folder.iterdir() if ".v1" in item.name]
    assert [item.name for item in copies] == ["state.db.v1"]
    assert stat.S_IMODE(copies[0].stat().st_mode) == 0o600
    assert version_of(copies[0]) == 1
    assert list(sqlite3.connect(copies[0]).iterdump()) == before


def test_a_copy_of_another_time_is_not_overwritten(folder: Path) -> None:
    (folder / "state.db.v1").write_text("precious")
    open_store(folder).close()
    assert (folder / "state.db.v1").read_text() == "precious"
    assert version_of(folder / "state.db.v1.2") == 1


def test_reading_an_old_state_shows_all_and_changes_nothing(folder: Path) -> None:
    before = {item.name: item.read_bytes() for item in folder.iterdir()}
    store = read_store(folder)
    assert store is not None
    assert [run.id for run in store.runs(9)] == ["r2", "r1"]
    assert store.holds(1_000.0) == ()
    assert store.verify() == ()
    with pytest.raises(StateError):
        store.begin_run(a_run("r3"))
    store.close()
    assert {item.name: item.read_bytes() for item in folder.iterdir()} == before


def test_killed_in_the_middle_it_is_the_old_state_and_the_next_one_takes_it_over(folder: Path) -> None:
    died = subprocess.run([sys.executable, "-c", DIE_AT_THE_END, str(folder)], check=False)
    assert died.returncode == -signal.SIGKILL
    assert version_of(folder / "state.db") == 1
    connection = sqlite3.connect(folder / "state.db")
    assert not connection.execute("SELECT * FROM sqlite_master WHERE name IN ('holds', 'alembic_version')").fetchall()
    connection.close()
    store = open_store(folder)
    assert len(store.runs(9)) == 2
    assert store.verify() == ()
    store.close()


def test_processes_that_come_at_once_take_it_over_once(folder: Path) -> None:
    processes = [subprocess.Popen([sys.executable, "-c", OPEN, str(folder)]) for _ in range(3)]
    assert [process.wait() for process in processes] == [0, 0, 0]
    assert version_of(folder / "state.db") == VERSION
    assert not (folder / "state.db.v1.2").exists()
    store = open_store(folder)
    assert len(store.runs(9)) == 2
    assert store.verify() == ()
    store.close()


def test_a_present_state_is_opened_without_loading_alembic(folder: Path) -> None:
    open_store(folder).close()
    program = f"{OPEN}; sys.exit('alembic' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program, str(folder)], check=False).returncode == 0


def test_an_old_state_that_is_damaged_is_left_alone(folder: Path) -> None:
    file = folder / "state.db"
    data = bytearray(file.read_bytes())
    data[4096:] = os.urandom(len(data) - 4096)
    file.write_bytes(data)
    for opening in (open_store, read_store):
        with pytest.raises(StateError, match="is damaged"):
            opening(folder)
    assert file.read_bytes() == data
    assert [item.name for item in folder.iterdir()] == ["state.db"]


def step_by_step(connection: Connection) -> None:
    """All steps from nothing."""
    stamped.create(connection)
    upgrade(connection, 0)


def test_tables_made_step_by_step_are_those_made_at_once() -> None:
    with create_engine("sqlite://").begin() as connection:
        step_by_step(connection)
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []
    with create_engine("sqlite://").begin() as connection:
        metadata.create_all(connection)
        stamp(connection, VERSION)
        assert MigrationContext.configure(connection).get_current_revision() == revision_of(VERSION)
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []
