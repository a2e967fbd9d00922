"""The agent on simulated nodes: what each kind of commit, drift and trouble comes to. The repository is a real one."""

from pathlib import Path

import pytest

from tests.lifecycle.following import Followed


@pytest.fixture
def branch(tmp_path: Path) -> Followed:
    return Followed(tmp_path)


def test_a_commit_becomes_the_fleet_and_then_there_is_nothing_to_do(branch: Followed) -> None:
    commit = branch.push()
    assert 0 == branch.once(), branch.lines
    remembered = branch.memory.recalled()
    assert (commit, commit) == (remembered.applied, remembered.good)
    assert ["gitops.commit", "gitops.planned", "gitops.applying", "gitops.applied", "gitops.planned"] == branch.kinds
    assert 0 == branch.once()
    assert ["gitops.commit", "gitops.planned"] == branch.kinds
    assert branch.story.plan().is_empty
