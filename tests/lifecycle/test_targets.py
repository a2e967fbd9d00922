"""Plan and apply of a part: whole groups, and what is not asked for is neither touched nor in the way."""

from pathlib import Path

import pytest

from tests.lifecycle.commanding import Commands
from tests.lifecycle.harness import QUAD, Story


@pytest.fixture
def story(tmp_path: Path) -> Story:
    return Story(tmp_path)


@pytest.fixture
def fleet(story: Story, capsys: pytest.CaptureFixture[str]) -> Commands:
    return Commands(story, capsys)


TARGETS = [
    (("--lane", "solo"), {"solo": 1}),
    (("--cluster", "pair-a"), {"pair": 2}),
    (("--node", "node2"), {"pair": 2}),
]


@pytest.mark.parametrize(("words", "expected"), TARGETS, ids=["lane", "cluster", "node"])
def test_only_what_is_asked_for_is_applied_and_that_is_settled(
    fleet: Commands, story: Story, words: tuple[str, str], expected: dict[str, int]
) -> None:
    assert 0 == fleet("apply", *words, "--yes").code
    assert expected == story.running_lanes()
    assert 0 == fleet("plan", *words, "--detailed-exitcode").code
    assert 2 == fleet("plan", "--detailed-exitcode").code
    assert 0 == fleet("apply", "--yes").code
    assert {"pair": 2, "solo": 1} == story.running_lanes()


def test_what_hangs_together_with_it_comes_along_and_is_said(fleet: Commands, story: Story) -> None:
    story.apply()
    story.place(QUAD)
    said = fleet("plan", "--lane", "solo").out
    assert "comes along: its steps and those of single-3/solo need each other" in said
    assert "Run `fleet apply --lane solo` to carry it out." in said
    assert 0 == fleet("apply", "--lane", "solo", "--yes").code
    assert {"quad": 4} == story.running_lanes()


def test_a_refused_lane_that_is_not_asked_for_stops_nothing(fleet: Commands, story: Story) -> None:
    story.nodes.node("node3").listen(30000)
    assert 3 == fleet("apply", "--yes").code
    assert 3 == fleet("apply", "--lane", "solo", "--yes").code
    assert 0 == fleet("apply", "--lane", "pair", "--yes").code
    assert {"pair": 2} == story.running_lanes()


def test_a_node_that_is_off_and_not_asked_for_is_not_missed(fleet: Commands, story: Story) -> None:
    story.nodes.node("node3").power_off()
    assert 4 == fleet("plan").code
    assert 0 == fleet("apply", "--lane", "pair", "--yes").code
    assert {"pair": 2} == story.running_lanes()
    assert 4 == fleet("plan", "--node", "node3").code


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--lane", "solos"), "no lane named 'solos'; did you mean 'solo'?"),
        (("--cluster", "pair-z"), "no cluster named 'pair-z'; did you mean 'pair-"),
        (("--node", "n"), "no node named 'n'; known: node1, node2, node3, node4"),
    ],
    ids=["lane", "cluster", "node"],
)
@pytest.mark.parametrize("command", ["plan", "apply"])
def test_a_name_that_is_not_in_the_spec_is_an_error(
    fleet: Commands, story: Story, command: str, words: tuple[str, str], told: str
) -> None:
    done = fleet(command, *words)
    assert (1, ()) == (done.code, story.nodes.mutations)
    assert told in done.err
