"""`fleet lease ls` and `fleet lease break`, on the simulated fleet of a story."""

from pathlib import Path

import pytest

from reconciler.core.leases import Claim
from reconciler.testing import run_simulated
from tests.lifecycle.commanding import Commands
from tests.lifecycle.harness import Story

THEIRS = Claim("ci@runner", "apply of plan 3c4d", "run-2")


@pytest.fixture
def story(tmp_path: Path) -> Story:
    return Story(tmp_path)


@pytest.fixture
def fleet(story: Story, capsys: pytest.CaptureFixture[str]) -> Commands:
    return Commands(story, capsys)


@pytest.fixture
def held(story: Story) -> str:
    """A node whose lease another controller has."""

    async def take() -> None:
        node = await story.nodes.second("rival").connect("node2", 10)
        await node.leases.take(THEIRS)

    run_simulated(take())
    return "node2"


def test_every_node_is_told_with_who_has_it_since_when_and_what_for(fleet: Commands, held: str) -> None:
    done = fleet("lease", "ls")
    assert 0 == done.code
    lines = done.out.splitlines()
    assert ["node1  free", "node3  free", "node4  free"] == [line for line in lines if not line.startswith(held)]
    [line] = [line for line in lines if line.startswith(held)]
    assert line.startswith("node2  leased by ci@runner for ")
    assert line.endswith("s: apply of plan 3c4d (run run-2), fence 1")


def test_json_has_every_part(fleet: Commands, held: str) -> None:
    found = {item["node"]: item for item in fleet("lease", "ls", "--json").json}
    assert {"owner": "ci@runner", "purpose": "apply of plan 3c4d", "run_id": "run-2"} == found[held]["holder"]["claim"]
    assert 1 == found[held]["holder"]["fence"]
    assert 0 <= found[held]["holder"]["age_s"] < 60
    assert found["node1"]["holder"] is None
    assert found["node1"]["unknown"] is None


def test_nodes_that_cannot_be_asked_are_told(fleet: Commands, story: Story) -> None:
    story.nodes.node("node1").power_off()
    story.nodes.node("node3").cut_link()
    done = fleet("lease", "ls", "--deadline", "2")
    assert 4 == done.code
    assert "node1  unknown: " in done.out
    assert "node3  unknown: no answer in 2 s" in done.out
    assert "node2  free" in done.out


def test_a_lease_is_broken_and_who_had_it_is_told(fleet: Commands, held: str) -> None:
    done = fleet("lease", "break", held, "--yes")
    assert (0, "") == (done.code, done.err)
    assert done.out.startswith("Ended: node2 was leased by ci@runner for ")
    assert "node2  free" in fleet("lease", "ls").out
    assert "Nobody has the lease of node2.\n" == fleet("lease", "break", held, "--yes").out
    assert {"node": "node2", "broken": None} == fleet("lease", "break", held, "--yes", "--json").json


def test_nothing_is_broken_without_a_yes(fleet: Commands, held: str) -> None:
    done = fleet("lease", "break", held)
    assert 1 == done.code
    assert "say --yes" in done.err
    assert "node2  leased by ci@runner" in fleet("lease", "ls").out


def test_a_name_that_is_no_node_is_told(fleet: Commands, story: Story) -> None:
    done = fleet("lease", "break", "node9", "--yes")
    assert (1, []) == (done.code, story.nodes.calls)
    assert "no node named 'node9'" in done.err


def test_a_node_that_cannot_be_reached_keeps_its_lease(fleet: Commands, story: Story, held: str) -> None:
    story.nodes.node(held).cut_link()
    done = fleet("lease", "break", held, "--yes", "--deadline", "2")
    assert (1, "") == (done.code, done.out)
    assert "no answer" in done.err
