"""The local ends of forwards."""

import os
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from reconciler.nodes.sockets import LONGEST_PATH, PREFIX, SocketPaths, private_directory, remove_left


def test_nothing_is_made_before_its_time_and_nothing_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    paths = SocketPaths()
    paths.close()
    assert list(tmp_path.iterdir()) == []
    first, second = paths.new(), paths.new()
    assert first != second
    assert stat.S_IMODE(first.parent.stat().st_mode) == 0o700
    first.write_text("")
    paths.close()
    assert list(tmp_path.iterdir()) == []


def test_a_long_temporary_folder_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A Unix socket's path has to fit 108 bytes."""
    long = tmp_path / ("x" * LONGEST_PATH)
    long.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(long))
    found = private_directory()
    found.rmdir()
    assert len(str(found)) < LONGEST_PATH


def test_a_program_that_forgets_to_close_leaves_nothing() -> None:
    program = "from reconciler.nodes.sockets import SocketPaths; paths = SocketPaths(); print(paths.new())"
    argv = [sys.executable, "-c", program]
    with tempfile.TemporaryDirectory() as short:  # pytest's own folder may be too long for the path of a socket
        done = subprocess.run(argv, env={"TMPDIR": short}, capture_output=True, text=True, check=True)
        assert done.stdout.startswith(short)
        assert [] == list(Path(short).iterdir())


def test_what_a_killed_process_left_goes_and_what_a_living_one_has_stays(tmp_path: Path) -> None:
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    left, own, other = (
        tmp_path / f"{PREFIX}{dead.pid}-abc",
        tmp_path / f"{PREFIX}{os.getpid()}-abc",
        tmp_path / "fleet-demo-abc",
    )
    for folder in (left, own, other):
        folder.mkdir()
    remove_left(tmp_path)
    assert (False, True, True) == (left.exists(), own.exists(), other.exists())
