"""`fleet models` on the simulated nodes: what is where, what differs, what cannot be known."""

from dataclasses import replace
from pathlib import Path

import pytest

from reconciler.core.models import ModelFacts
from reconciler.core.outcome import Exit
from reconciler.testing import Fault, SimulatedFleet
from reconciler.testing.faults import Operation
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


# copying


def pair(story: Story) -> SimulatedFleet:
    """The pair's nodes have an rsync; node1 has the model, node2 has not."""
    put(story, WHOLE, "node1")
    story.nodes.node("node2").missing_paths.add(MODEL)
    return story.nodes


def has(story: Story, node: str) -> bool:
    shelf = story.nodes.node(node).models
    return MODEL in shelf.models and MODEL not in shelf.missing


def test_sync_copies_what_a_node_lacks_and_the_second_time_there_is_nothing_to_do(
    story: Story, fleet: Commands
) -> None:
    said = fleet("models", "sync", "--yes")
    assert 0 == said.code  # all have it
    pair(story)
    said = fleet("models", "sync", "--yes")
    assert 0 == said.code, said
    assert "bigram missing on node2: 5.0 KiB, copied from node1" in said.out
    assert "1 model brought to 1 node" in said.out
    assert has(story, "node2")
    assert {"model-fetch", "model-adopt"} == {call.operation for call in story.nodes.mutations}
    before = len(story.nodes.mutations)
    assert 0 == fleet("models", "sync", "--yes").code
    assert before == len(story.nodes.mutations)


def test_a_plan_does_not_copy_unless_the_spec_says_so_and_names_who_has_it(story: Story, fleet: Commands) -> None:
    pair(story)
    said = fleet("plan")
    assert 3 == said.code
    assert "model bigram is not on node2" in said.out
    assert "node1 has it: `fleet models sync bigram` copies it" in said.out


def test_with_sync_an_apply_copies_before_it_creates_anything(story: Story) -> None:
    pair(story)
    story.edit("served_name: bigram", "served_name: bigram\n    sync: true")
    assert Exit.OK == story.apply().exit
    done = [(call.operation, call.node) for call in story.nodes.mutations if call.node == "node2"]
    assert done.index(("model-adopt", "node2")) < done.index(("create", "node2"))
    assert {"pair": 2, "solo": 1} == story.running_lanes()


def test_a_node_without_rsync_is_told_of(story: Story, fleet: Commands) -> None:
    pair(story)
    story.nodes.node("node2").models.has_rsync = False
    said = fleet("models", "sync", "--yes")
    assert 3 == said.code
    assert "install rsync on node2" in said.out


def test_a_disk_that_is_too_small_refuses_before_anything_moves(story: Story, fleet: Commands) -> None:
    pair(story).node("node2").fill_disk(4000)
    said = fleet("models", "sync", "--yes")
    assert 3 == said.code
    assert "node2 has 3.9 KiB free, and needs 5.0 KiB for model bigram" in said.out
    assert () == story.nodes.mutations


def test_what_came_and_is_not_right_gets_no_name(story: Story, fleet: Commands) -> None:
    pair(story)
    story.edit("served_name: bigram", f'served_name: bigram\n    verify: {{a.safetensors: "sha256:{"0" * 64}"}}')
    put(story, sim_model({"config.json": 100, "a.safetensors": 20 * 2**20}), "node1")  # too big for a look to hash
    said = fleet("models", "sync", "--yes")
    assert 6 == said.code
    assert "is not right: a.safetensors has sha256:" in said.out
    assert not has(story, "node2")


@pytest.mark.parametrize("operation", ["model-fetch", "model-adopt"])
def test_a_lost_reply_is_settled_by_looking(story: Story, fleet: Commands, operation: Operation) -> None:
    pair(story).inject(Fault.lose_reply("node2", operation))
    assert 0 == fleet("models", "sync", "--yes").code
    assert has(story, "node2")


def test_a_giver_that_ends_in_the_middle_leaves_nothing_that_counts(story: Story, fleet: Commands) -> None:
    pair(story).inject(Fault.do("node2", "model-fetch", lambda nodes: nodes.node("node1").power_off(), after=False))
    said = fleet("models", "sync", "--yes")
    assert 6 == said.code
    assert "could not be brought: bigram to node2; no lane was touched" in said.out
    assert "then `fleet models sync`" in said.out
    assert not has(story, "node2")
    story.nodes.node("node1").power_on()
    assert 0 == fleet("models", "sync", "--yes").code
    assert has(story, "node2")


def test_a_copy_that_fails_puts_no_version_aside(story: Story) -> None:
    pair(story).inject(Fault.fail("node2", "model-fetch", nth=None))
    story.edit("served_name: bigram", "served_name: bigram\n    sync: true")
    applied = story.apply()
    assert Exit.UNCHANGED == applied.exit, applied.summary
    assert "pair-a/pair: failed before anything was stopped" in applied.summary
    story.nodes.heal()
    assert Exit.OK == story.apply().exit
    assert {"pair": 2, "solo": 1} == story.running_lanes()


def test_images_come_and_are_listed_where_a_storage_of_models_hangs(story: Story, fleet: Commands) -> None:
    for node in ("node1", "node2", "node3"):
        story.nodes.inject(Fault.lose_reply(node, "model-look", nth=None))
    assert 0 == fleet("images", "sync", "--yes").code
    assert 0 == fleet("images", "ls").code
    assert "model-look" not in {call.operation for call in story.nodes.calls}


def test_the_commands_of_the_page_run_as_written(story: Story, fleet: Commands) -> None:
    pair(story)
    page = (Path(__file__).parents[2] / "docs/models.md").read_text(encoding="utf-8")
    commands = [line.split()[1:] for line in page.splitlines() if line.startswith("fleet ")]
    told = [(words[1], fleet(*words).code) for words in commands]
    missed = ("verify", 2)  # node2 lacks it until the last
    assert [("ls", 0), ("ls", 0), missed, ("verify", 0), ("sync", 0)] == told
    assert 0 == fleet("models", "verify", "bigram").code
