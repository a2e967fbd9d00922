"""Which commit a plan says it is of."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from reconciler.cli.wiring import commit_of
from reconciler.core.lock import NO_LOCK
from reconciler.core.lock_text import lock_text
from reconciler.fleet import Fleet, over_ssh
from reconciler.images.lockfile import NAME

INCLUDING = "fleet: edge\ninclude: [lanes/*.yaml]\nnodes: {node1: {ssh: {host: node1.lan}, platform: linux/amd64}}\n"
LANES = "clusters: {one: {nodes: [node1]}}\n"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A commit with a spec of three files."""
    (tmp_path / "lanes").mkdir()
    (tmp_path / "fleet.yaml").write_text(INCLUDING)
    (tmp_path / "lanes/a.yaml").write_text(LANES)
    (tmp_path / "lanes/none.yaml").write_text("lanes: {}\n")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "-c", "user.name=o", "-c", "user.email=o@invalid", "commit", "-qm", "first")
    return tmp_path


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(["git", "-C", str(folder), *words], check=True, capture_output=True, text=True)
    return done.stdout.strip()


def commit(folder: Path) -> str | None:
    return commit_of(Fleet.load(folder / "fleet.yaml", over_ssh))


def beside(folder: Path) -> None:
    (folder / "vault").mkdir()
    (folder / "vault/blob").write_text("bytes")


def edited(folder: Path) -> None:
    (folder / "lanes/a.yaml").write_text(LANES + "# edited\n")


def added(folder: Path) -> None:
    (folder / "lanes/b.yaml").write_text("models: {tiny: {repo: a/b}}\n")


def removed(folder: Path) -> None:
    (folder / "lanes/a.yaml").unlink()


def policed(folder: Path) -> None:
    """By a file that git does not have: who may stop what is no part of the commit."""
    (folder / "ours.py").write_text("")
    (folder / "fleet.yaml").write_text(INCLUDING + "policies: {files: [ours.py]}\n")
    git(folder, "add", "fleet.yaml")
    git(folder, "-c", "user.name=o", "-c", "user.email=o@invalid", "commit", "-qm", "second")


def locked(folder: Path) -> None:
    (folder / NAME).write_text(lock_text(NO_LOCK))


def test_a_spec_as_committed_is_of_that_commit_also_through_a_link(repository: Path, tmp_path: Path) -> None:
    assert git(repository, "rev-parse", "HEAD") == commit(repository)
    (tmp_path / "current").symlink_to(repository)
    assert git(repository, "rev-parse", "HEAD") == commit(tmp_path / "current")


def test_what_lies_beside_the_spec_is_no_part_of_it(repository: Path) -> None:
    beside(repository)
    assert git(repository, "rev-parse", "HEAD") == commit(repository)


@pytest.mark.parametrize("change", [edited, added, removed, policed, locked])
def test_a_spec_that_differs_from_the_commit_is_of_none(repository: Path, change: Callable[[Path], None]) -> None:
    change(repository)
    assert commit(repository) is None
