"""`fleet.lock` beside the spec."""

import os
from pathlib import Path

import pytest

from reconciler.core.lock import Lock, LockError
from reconciler.images import lockfile
from reconciler.images.documents import locked_image
from tests.unit.images.pictures import two_platforms


def test_what_is_written_is_read(tmp_path: Path) -> None:
    picture = two_platforms()
    lock = Lock((locked_image("ghcr.io/org/x:v1", picture.top, picture.read),))
    lockfile.write(tmp_path, lock)
    assert lock == lockfile.read(tmp_path)
    assert ["fleet.lock"] == [path.name for path in tmp_path.iterdir()]


def test_no_file_is_an_empty_lock(tmp_path: Path) -> None:
    assert Lock() == lockfile.read(tmp_path)


@pytest.mark.parametrize("data", [b"{}", b"\xff\xfe", b"<<<<<<< ours"])
def test_a_broken_one_is_told_with_its_name(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "fleet.lock").write_bytes(data)
    with pytest.raises(LockError, match=r"fleet\.lock: ") as told:
        lockfile.read(tmp_path)
    assert str(tmp_path) in told.value.message
    assert "fleet pin --all" in told.value.hint


def test_a_write_that_fails_leaves_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    picture = two_platforms()
    assert lockfile.write(tmp_path, Lock((locked_image("y", picture.top, picture.read),)))
    before = (tmp_path / "fleet.lock").read_bytes()

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        lockfile.write(tmp_path, Lock((locked_image("x", picture.top, picture.read),)))
    assert before == (tmp_path / "fleet.lock").read_bytes()
    assert ["fleet.lock"] == [path.name for path in tmp_path.iterdir()]


def test_the_same_is_not_written_again_and_nothing_not_at_all(tmp_path: Path) -> None:
    assert not lockfile.write(tmp_path, Lock())
    assert [] == list(tmp_path.iterdir())
    picture = two_platforms()
    lock = Lock((locked_image("x", picture.top, picture.read),))
    assert lockfile.write(tmp_path, lock)
    assert not lockfile.write(tmp_path, lock)
    assert lockfile.write(tmp_path, Lock())


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "fleet.lock").symlink_to("elsewhere/fleet.lock")
    lockfile.write(tmp_path, Lock())
    assert (tmp_path / "fleet.lock").is_symlink()
    assert Lock() == lockfile.read(tmp_path)
