"""`fleet models` on the simulated nodes: what is where, what differs, what cannot be known."""

from dataclasses import replace
from pathlib import Path

import pytest

from reconciler.core.models import ModelFacts
from reconciler.testing import Fault
from reconciler.testing.models import sim_model
from tests.lifecycle.commanding import Commands
from tests.lifecycle.harness import Story

MODEL = "/srv/models/good.gguf"
WHOLE = sim_model({"config.json": 100, "a.safetensors": 5000})


@pytest.fixture
def story(tmp_path: Path) -> Story:
    return Story(tmp_path)


@pytest.fixture
def fleet(story: Story, capsys: pytest.CaptureFixture[str]) -> Commands:
    return Commands(story, capsys)


def put(story: Story, found: ModelFacts, *nodes: str) -> None:
    for node in nodes or ("node1", "node2", "node3", "node4"):
        story.nodes.node(node).models.models[MODEL] = found


def test_ls_says_what_each_node_has(story: Story, fleet: Commands) -> None:
    put(story, WHOLE)
    put(story, replace(WHOLE, shards=("a.safetensors", "b.safetensors")), "node2")
    story.nodes.node("node4").missing_paths.add(MODEL)
    said = fleet("models", "ls")
    assert 0 == said.code
    rows = {tuple(line.split()[1:3]) for line in said.out.splitlines()[1:]}
    assert {("node1", "whole"), ("node2", "partial"), ("node3", "whole"), ("node4", "absent")} == rows
    assert "lacks b.safetensors" in said.out
    assert [] == [call for call in story.nodes.calls if call.mutating]


def test_ls_as_json_names_the_lanes_that_read_it(story: Story, fleet: Commands) -> None:
    found = {item["node"]: item for item in fleet("models", "ls", "--json").json["models"]}
    assert (["pair"], ["solo"], []) == (found["node1"]["lanes"], found["node3"]["lanes"], found["node4"]["lanes"])
    assert {"whole"} == {item["state"] for item in found.values()}


def test_a_node_that_does_not_answer_is_told_and_the_others_are_shown(story: Story, fleet: Commands) -> None:
    story.nodes.node("node2").cut_link()
    said = fleet("models", "ls")
    assert 4 == said.code
    assert "! node2" in said.out
    assert "node1" in said.out


def test_names_that_the_spec_does_not_have_are_an_error(fleet: Commands) -> None:
    said = fleet("models", "ls", "bigrm")
    assert 1 == said.code
    assert "no model named 'bigrm'; did you mean 'bigram'?" in said.err


def test_verify_is_content_with_what_is_right(story: Story, fleet: Commands) -> None:
    put(story, WHOLE)
    story.edit("served_name: bigram", f'served_name: bigram\n    verify: {{config.json: "{WHOLE.files[1].digest}"}}')
    said = fleet("models", "verify", "--node", "node1")
    assert (0, "bigram on node1: 1 file (100 B) right by checksum\n") == (said.code, said.out)


def test_verify_finds_what_differs_and_says_so_by_its_exit_code(story: Story, fleet: Commands) -> None:
    put(story, WHOLE)
    put(story, sim_model({"config.json": 100}, version="2"), "node2")
    story.edit("served_name: bigram", f'served_name: bigram\n    verify: {{config.json: "{WHOLE.files[1].digest}"}}')
    said = fleet("models", "verify", "--json")
    assert 2 == said.code
    assert ["node2"] == [proof["node"] for proof in said.json["proofs"] if proof["faults"]]


def test_verify_of_a_node_that_goes_away_is_unknown_not_right(story: Story, fleet: Commands) -> None:
    put(story, WHOLE)
    story.nodes.inject(Fault.lose_reply("node3", "model-prove", nth=None))
    said = fleet("models", "verify")
    assert 4 == said.code
    assert "! node3" in said.out
