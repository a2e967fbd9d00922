"""A node that the spec declares powered off: nobody goes there, nothing is done there, and it is no news."""

from pathlib import Path

import pytest
import yaml

from tests.lifecycle.commanding import Commands
from tests.lifecycle.harness import Story


@pytest.fixture
def story(tmp_path: Path) -> Story:
    return Story(tmp_path)


@pytest.fixture
def fleet(story: Story, capsys: pytest.CaptureFixture[str]) -> Commands:
    return Commands(story, capsys)


def declare(story: Story, node: str, **off: str) -> None:
    """Write `off` to the node in the spec."""
    for path in story.folder.glob("*.yaml"):
        found = yaml.safe_load(path.read_text())
        if node in (found.get("nodes") or {}):
            found["nodes"][node]["off"] = {"reason": "the night", **off}
            path.write_text(yaml.safe_dump(found, sort_keys=False))


@pytest.mark.parametrize("is_on", [False, True])
def test_it_is_never_contacted_and_no_drift(fleet: Commands, story: Story, is_on: bool) -> None:
    """Even when it is on in truth."""
    story.apply()
    if not is_on:
        story.nodes.node("node2").power_off()
    declare(story, "node2")
    story.nodes.calls.clear()
    assert 0 == fleet("drift").code
    status = fleet("status")
    assert 0 == status.code
    assert "- node2: powered off (declared): the night" in status.out
    assert "pair-a/pair: unknown, unknown, powered-off" in status.out
    plan = fleet("plan", "--detailed-exitcode")
    assert 0 == plan.code
    assert "1 powered off" in plan.out
    assert "- node2: powered off (declared): the night" in plan.out
    assert "node2 is declared powered off" in plan.out
    assert "- node2: powered off (declared): the night" in fleet("doctor").out
    assert 0 == fleet("apply", "--yes").code
    assert 0 == fleet("images", "ls").code
    assert 0 == fleet("lease", "ls").code
    assert 1 == fleet("pin", "app:1", "--from", "node2").code
    assert [] == [call for call in story.nodes.calls if call.node == "node2"]


def test_what_is_placed_on_it_waits_and_the_rest_goes_on(fleet: Commands, story: Story) -> None:
    declare(story, "node2")
    assert 0 == fleet("apply", "--yes").code
    assert {"node3"} == {call.node for call in story.nodes.mutations if call.operation == "create"}


def test_beside_one_that_should_answer_and_does_not(fleet: Commands, story: Story) -> None:
    story.apply()
    declare(story, "node2")
    story.nodes.node("node1").power_off()
    assert (4, 4, 4) == (fleet("drift").code, fleet("status").code, fleet("plan").code)


def test_after_its_last_day_it_is_a_node_like_any_other(fleet: Commands, story: Story) -> None:
    story.apply()
    declare(story, "node2", until="2020-01-01")
    assert (0, 0) == (fleet("drift").code, fleet("plan", "--detailed-exitcode").code)
    story.nodes.node("node2").power_off()
    assert 4 == fleet("drift").code
