"""`fleet drift` where cron runs it: as a process of its own, with hardly an environment, beside things that hang."""

import os
import re
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from state import open_store
from tests.lab.specfile import PAIR_AND_SOLO, Inventory, write

FLEET = str(Path(sys.executable).with_name("fleet"))
NAMES = ("node1", "node2", "node3")
NOBODY = 61234
"""A user id without an entry anywhere."""


def spec(folder: Path, port: int) -> Path:
    """A fleet on this machine's loopback, where nothing that speaks SSH listens at this port."""
    addresses = {name: f"10.99.0.{number}" for number, name in enumerate(NAMES, start=1)}
    inventory = Inventory(addresses, {}, f"ghcr.io/a/b@sha256:{'0' * 64}", None)
    made = write(folder, inventory, PAIR_AND_SOLO)
    path = folder / "inventory.yaml"
    path.write_text(re.sub(r"host: 10\.99\.0\.(\d)", rf"host: 127.0.0.\1\n      port: {port}", path.read_text()))
    rule = "{class: host, address: '*', field: disk, reason: über, until: 2020-01-01}"
    made.write_text(f"{made.read_text()}drift: {{ignore: [{rule}]}}\n", encoding="utf-8")
    return made


@pytest.fixture
def mute() -> Iterator[int]:
    """A port at which somebody takes every connection and never says a word."""
    with socket.create_server(("", 0)) as server:
        yield int(server.getsockname()[1])


def look(
    file: Path, *words: str, env: tuple[str, ...] = ("LANG=C",), before: tuple[str, ...] = ()
) -> tuple[int, str, str]:
    """As cron does: its few variables, no home, no terminal."""
    argv = [*before, "env", "-i", "PATH=/usr/bin:/bin", *env, FLEET, "drift", "--file", str(file), *words]
    done = subprocess.run(argv, cwd="/", stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False)
    out, err = done.stdout.decode(), done.stderr.decode()
    assert "Traceback" not in out + err, err
    return done.returncode, out, err


@pytest.mark.parametrize("env", [("LANG=C",), ("LC_ALL=POSIX", "PYTHONUTF8=0", "PYTHONCOERCECLOCALE=0")], ids=len)
def test_it_needs_no_home_no_terminal_and_no_locale(tmp_path: Path, env: tuple[str, ...]) -> None:
    report = tmp_path / "report"
    file = spec(tmp_path / "spec", 1)
    assert (4, "", "") == look(file, "--format", "markdown", "--out", str(report), env=env)
    assert "über" in report.read_text(encoding="utf-8")
    code, out, err = look(file, env=env)
    assert (4, "") == (code, err)
    assert re.search("(ü|\\?+)ber", out)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
def test_a_user_without_an_entry_and_a_spec_that_cannot_be_written_beside(tmp_path: Path) -> None:
    shared = tmp_path / "spec"
    file = spec(shared, 1)
    for folder in (shared, *(parent for parent in shared.parents if str(parent).startswith("/tmp/"))):
        folder.chmod(0o755)
    reads = "+dac_read_search"  # the interpreter may be root's own
    ids = (f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", f"--inh-caps={reads}", f"--ambient-caps={reads}")
    code, out, err = look(file, before=("setpriv", *ids))
    assert 4 == code
    assert "node1" in out
    assert ["this report is not kept for the next one"] == re.findall("^fleet: (.*?):", err, re.MULTILINE)
    assert "permission denied" in err
    assert {"fleet.yaml", "inventory.yaml", "lanes.yaml"} == {path.name for path in shared.iterdir()}


def test_streams_that_are_closed_are_no_trouble(tmp_path: Path) -> None:
    file = spec(tmp_path / "spec", 1)
    report = tmp_path / "report"
    line = f'exec <&- >&- 2>&-; "{FLEET}" drift --file "{file}" --out "{report}"'
    assert 4 == subprocess.run(["env", "-i", "/bin/sh", "-c", line], timeout=60, check=False).returncode
    assert "node1" in report.read_text(encoding="utf-8")


def test_what_is_written_has_the_rights_that_the_job_gives(tmp_path: Path) -> None:
    report, metrics = tmp_path / "report", tmp_path / "fleet.prom"
    words = f'--out "{report}" --metrics "{metrics}"'
    line = f'umask 077; "{FLEET}" drift --file "{spec(tmp_path / "spec", 1)}" {words}'
    subprocess.run(["env", "-i", "/bin/sh", "-c", line], timeout=60, check=False)
    assert (0o600, 0o644) == (report.stat().st_mode & 0o777, metrics.stat().st_mode & 0o777)


def test_a_server_that_never_says_a_word_takes_no_more_than_the_time_for_the_whole(tmp_path: Path, mute: int) -> None:
    file = spec(tmp_path / "spec", mute)
    code, out, _ = look(file, "--within", "3", "--deadline", "300")
    assert 4 == code
    assert all(name in out for name in NAMES)


def test_a_state_that_is_locked_holds_nothing_up(tmp_path: Path) -> None:
    file = spec(tmp_path / "spec", 1)
    open_store(file.parent / ".fleet").close()
    with closing(sqlite3.connect(file.parent / ".fleet/state.db")) as holder:
        holder.execute("BEGIN EXCLUSIVE")
        code, out, err = look(file, "--within", "3")
    assert 4 == code
    assert "node1" in out
    assert "not kept for the next one: the state does not answer" in err


def test_a_database_that_never_says_a_word_holds_nothing_up(tmp_path: Path, mute: int) -> None:
    place = f"FLEET_STATE=postgresql://fleet@127.0.0.1:{mute}/fleet"
    code, out, err = look(spec(tmp_path / "spec", 1), "--within", "3", env=("LANG=C", place))
    assert 4 == code
    assert "node1" in out
    assert "the state does not answer" in err


def test_what_ends_it_from_outside_leaves_no_half_of_a_report(tmp_path: Path, mute: int) -> None:
    report = tmp_path / "report"
    argv = ("timeout", "1.5")
    code, _, err = look(spec(tmp_path / "spec", mute), "--out", str(report), "--within", "60", before=argv)
    assert 124 == code
    assert "interrupted" in err
    assert ["spec"] == [path.name for path in tmp_path.iterdir()]


def test_a_pipe_that_nobody_reads_ends_it_after_its_time(tmp_path: Path) -> None:
    file = spec(tmp_path / "spec", 1)
    line = f'"{FLEET}" drift --json --within 1 --file "{file}"'
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    while True:  # full, so that the first word already waits
        try:
            os.write(writer, b"x" * 4096)
        except BlockingIOError:
            break
    os.set_blocking(writer, True)
    with subprocess.Popen(["/bin/sh", "-c", f"exec {line}"], stdout=writer, stderr=subprocess.PIPE) as process:
        os.close(writer)
        assert process.stderr
        said = process.stderr.read().decode()
        assert (4, "no end within 1 s") == (process.wait(), re.findall("no end within 1 s", said)[0])
    os.close(reader)


@pytest.mark.parametrize(
    ("words", "code", "expected"),
    [
        ("", 1, "fleet: standard output: no space left on device\n"),
        ("--out /dev/full", 1, "fleet: /dev/full: no space left on device\n"),
        ("--out /dev/null --metrics /dev/full", 4, "no metrics are written: /dev/full: no space left on device\n"),
    ],
)
def test_a_full_disk_is_told_once_with_its_place(tmp_path: Path, words: str, code: int, expected: str) -> None:
    file = spec(tmp_path / "spec", 1)
    into_full = ("sh", "-c", 'exec "$@" >/dev/full', "sh") if not words else ()
    found, _, err = look(file, *words.split(), before=into_full)
    assert (code, True, False) == (found, err.endswith(expected), "Exception ignored" in err), err
