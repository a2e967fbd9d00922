"""Opening the state: what is made, what is refused and in which words, and that reading leaves no trace."""

import os
import shutil
import sqlite3
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import state.sqlite
from state import MisuseError, StateError, open_store, read_store
from state.errors import HARMLESS
from state.statements import VERSION
from tests.unit.state.samples import a_revision, a_run, intend

NOBODY = 65534


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / ".fleet"


@pytest.fixture
def file(folder: Path) -> Path:
    return folder / "state.db"


@pytest.fixture
def public_folder() -> Iterator[Path]:
    """A folder that another user can reach, and that this test becomes (root may write everywhere)."""
    base = Path(tempfile.mkdtemp())
    base.chmod(0o755)
    folder = base / ".fleet"
    yield folder
    for path in (base, folder):
        if path.exists():
            path.chmod(0o700)
    shutil.rmtree(base)


@pytest.fixture
def as_nobody() -> Iterator[None]:
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    yield
    os.seteuid(0)


def fill(folder: Path) -> None:
    store = open_store(folder)
    store.begin_run(a_run())
    store.confirm(a_revision())
    store.close()


def listing(folder: Path) -> dict[str, tuple[int, bytes]]:
    return {item.name: (item.stat().st_mtime_ns, item.read_bytes()) for item in folder.iterdir()}


def test_importing_the_package_loads_no_database_library() -> None:
    program = "import sys, state; sys.exit('sqlalchemy' in sys.modules or 'reconciler' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_a_state_that_has_its_tables_is_used_without_the_database_library(folder: Path) -> None:
    """It takes longer to load than a small fleet takes to answer."""
    fill(folder)
    program = """
import sys
from pathlib import Path
from state import open_store, read_store
folder = Path(sys.argv[1])
store = open_store(folder)
store.add_report(1.0, "{}")
store.close()
assert read_store(folder).reports(1) == ((1.0, "{}"),)
sys.exit(sorted({"sqlalchemy", "alembic"} & sys.modules.keys()) or 0)
"""
    subprocess.run([sys.executable, "-c", program, folder], check=True)


def test_folder_and_file_are_for_their_owner_only(folder: Path, file: Path) -> None:
    store = open_store(folder)
    store.begin_run(a_run())
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(item.stat().st_mode) for item in folder.iterdir()} == {0o600}
    store.close()


def test_what_was_recorded_is_there_after_opening_again(folder: Path) -> None:
    fill(folder)
    store = open_store(folder)
    assert store.runs(9) == (a_run(),)
    assert store.boots("pair/tiny", 9) == (12.5,)
    store.close()


def test_reading_where_nothing_is_gives_nothing_and_makes_nothing(folder: Path, tmp_path: Path) -> None:
    assert read_store(folder) is None
    assert list(tmp_path.iterdir()) == []


def test_reading_changes_nothing(folder: Path) -> None:
    fill(folder)
    before = listing(folder)
    store = read_store(folder)
    assert store is not None
    assert store.boots("pair/tiny", 9) == (12.5,)
    assert store.verify() == ()
    store.close()
    assert listing(folder) == before


def test_reading_sees_what_a_living_writer_has_committed(folder: Path) -> None:
    writer = open_store(folder)
    writer.begin_run(a_run())
    names = {item.name for item in folder.iterdir()}
    reader = read_store(folder)
    assert reader is not None
    assert reader.runs(9) == (a_run(),)
    writer.confirm(a_revision())
    assert reader.boots("pair/tiny", 9) == (12.5,)
    assert {item.name for item in folder.iterdir()} == names
    reader.close()
    writer.close()


def test_a_reader_keeps_working_while_writers_come_and_go(folder: Path) -> None:
    fill(folder)
    reader = read_store(folder)
    assert reader is not None
    for count in range(1, 4):
        writer = open_store(folder)
        writer.begin_run(a_run(f"later-{count}"))
        assert len(reader.runs(9)) == 1 + count
        writer.close()
        assert len(reader.runs(9)) == 1 + count


def test_a_reader_cannot_write(folder: Path) -> None:
    fill(folder)
    store = read_store(folder)
    assert store is not None
    with pytest.raises(StateError) as caught:
        store.begin_run(a_run("r2"))
    assert not isinstance(caught.value, MisuseError)
    assert len(store.runs(9)) == 1


def test_an_empty_file_reads_as_nothing(folder: Path, file: Path) -> None:
    folder.mkdir()
    file.touch()
    assert read_store(folder) is None
    assert file.stat().st_size == 0


def test_a_newer_version_says_to_upgrade_and_stays_as_it_is(folder: Path, file: Path) -> None:
    fill(folder)
    with sqlite3.connect(file) as connection:
        connection.execute(f"PRAGMA user_version = {VERSION + 1}")
    connection.close()
    before = file.read_bytes()
    for opening in (open_store, read_store):
        with pytest.raises(StateError, match=f"has version {VERSION + 1}") as caught:
            opening(folder)
        assert caught.value.hint.startswith("Upgrade the tool")
    assert file.read_bytes() == before


def make_text(file: Path) -> None:
    file.write_text("this is not a database, and it is longer than the header of one. " * 20)


def make_foreign_database(file: Path) -> None:
    connection = sqlite3.connect(file)
    connection.execute("CREATE TABLE customers (name TEXT)")
    connection.close()


def make_damage_in_the_middle(file: Path) -> None:
    fill(file.parent)
    data = bytearray(file.read_bytes())
    data[4096:] = os.urandom(len(data) - 4096)
    file.write_bytes(data)


def make_cut_short(file: Path) -> None:
    fill(file.parent)
    file.write_bytes(file.read_bytes()[: 4096 * 3])


BREAKAGES = [make_text, make_foreign_database, make_damage_in_the_middle, make_cut_short]


@pytest.mark.parametrize("breaking", BREAKAGES)
def test_damage_is_named_and_never_repaired(breaking: object, folder: Path, file: Path) -> None:
    assert callable(breaking)
    folder.mkdir(mode=0o700)
    breaking(file)
    before = file.read_bytes()
    for opening in (open_store, read_store):
        with pytest.raises(StateError, match="is damaged, or not a state of this tool") as caught:
            opening(folder)
        assert f"`mv {file} {file}.broken`" in caught.value.hint
        assert HARMLESS in caught.value.hint
    assert file.read_bytes() == before


def test_the_one_command_of_the_hint_is_enough_even_with_the_log_left_behind(folder: Path, file: Path) -> None:
    fill(folder)
    file.with_name("state.db-wal").write_bytes(os.urandom(9_000))
    make_text(file)
    with pytest.raises(StateError) as caught:
        open_store(folder)
    subprocess.run(["sh", "-c", caught.value.hint.split("`")[1]], check=True)
    store = open_store(folder)
    assert store.runs(9) == ()
    store.begin_run(a_run())
    assert store.verify() == ()
    store.close()


def test_damage_that_happens_later_is_found_by_verify(folder: Path, file: Path) -> None:
    fill(folder)
    connection = sqlite3.connect(file)
    connection.execute("INSERT INTO outcomes VALUES ('ghost', 1, 'applied', '', 1.0)")
    connection.commit()
    connection.close()
    store = open_store(folder)
    assert store.verify() == ("entry 1 of run ghost has an outcome without an intent",)
    store.close()


def test_a_lock_held_too_long_is_named(folder: Path, file: Path) -> None:
    fill(folder)
    holder = sqlite3.connect(file, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    with pytest.raises(StateError, match="locked by another process") as caught:
        open_store(folder, busy_s=0.05)
    assert caught.value.hint == "Wait for the other run to end, or end it."
    holder.close()


def test_the_state_is_not_a_folder(folder: Path, file: Path) -> None:
    file.mkdir(parents=True)
    for opening in (open_store, read_store):
        with pytest.raises(StateError, match="cannot be opened"):
            opening(folder)


def test_the_folder_is_not_a_file(folder: Path) -> None:
    folder.write_text("")
    with pytest.raises(StateError, match="cannot be opened"):
        open_store(folder)
    assert read_store(folder) is None


def test_a_folder_that_cannot_be_made(public_folder: Path, as_nobody: None) -> None:
    if os.getuid() != 0:
        public_folder.parent.chmod(0o500)
    with pytest.raises(StateError) as caught:
        open_store(public_folder)
    assert str(caught.value) == f"cannot create .fleet in {public_folder.parent}: permission denied"
    assert caught.value.hint.startswith("Nothing was changed. ")
    assert f"make {public_folder.parent} writable" in caught.value.hint
    assert "mv" not in caught.value.hint


def test_a_state_of_somebody_else(public_folder: Path, request: pytest.FixtureRequest) -> None:
    fill(public_folder)
    if os.geteuid() != 0:
        public_folder.chmod(0)
    request.getfixturevalue("as_nobody")
    for opening in (open_store, read_store):
        with pytest.raises(StateError, match="cannot be opened: permission denied") as caught:
            opening(public_folder)
        assert caught.value.hint == f"Make {public_folder} and the files in it readable and writable for you."


def test_a_read_only_folder_can_be_read_but_not_written(public_folder: Path, request: pytest.FixtureRequest) -> None:
    fill(public_folder)
    (public_folder / "state.db").chmod(0o444)
    public_folder.chmod(0o555)
    request.getfixturevalue("as_nobody")
    store = read_store(public_folder)
    assert store is not None
    assert store.runs(9) == (a_run(),)
    with pytest.raises(StateError, match="cannot be opened: permission denied"):
        open_store(public_folder)


def test_a_folder_where_the_log_cannot_be_made_is_noticed_at_opening(
    public_folder: Path, request: pytest.FixtureRequest
) -> None:
    fill(public_folder)
    (public_folder / "state.db").chmod(0o666)
    public_folder.chmod(0o555)
    request.getfixturevalue("as_nobody")
    with pytest.raises(StateError) as caught:
        open_store(public_folder)
    assert "Make the folder and its files readable and writable" in caught.value.hint


def test_a_full_disk_is_noticed_at_opening(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(folder)
    monkeypatch.setattr(state.sqlite, "ROOM_BYTES", 1 << 62)
    with pytest.raises(StateError, match="the disk is full") as caught:
        open_store(folder)
    assert caught.value.hint == "Free some disk space."


def test_a_disk_that_fills_up_later_is_named_and_loses_nothing(folder: Path) -> None:
    store = open_store(folder)
    store.begin_run(a_run())
    database = store._database  # type: ignore[attr-defined]  # SQLite's own way to have no room
    with database.writing() as transaction:
        (pages,) = transaction.connection.execute("PRAGMA page_count").fetchone()
        transaction.connection.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(StateError, match="the disk is full"):
        any(intend(store) < 0 for _ in range(200))
    assert store.verify() == ()
    store.close()


def test_names_with_blanks_and_quotes_are_kept_apart_in_the_hint(tmp_path: Path) -> None:
    folder = tmp_path / "my fleet's %41?"
    fill(folder)
    store = read_store(folder)
    assert store is not None
    assert store.runs(9) == (a_run(),)
    make_text(folder / "state.db")
    with pytest.raises(StateError) as caught:
        open_store(folder)
    subprocess.run(["sh", "-c", caught.value.hint.split("`")[1]], check=True)
    assert (folder / "state.db.broken").exists()
