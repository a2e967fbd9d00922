"""Hooks around a change: what is asked before anything stops, who is told afterwards, what a failure of each does."""

import json
from pathlib import Path
from typing import Any

import pytest

from reconciler.core.hooks import HookCall, HookError
from reconciler.testing import Call, Fault
from tests.lifecycle.commanding import Commands
from tests.lifecycle.harness import Story
from tests.lifecycle.test_events import VALID

BOTH = {"pair": 2, "solo": 1}
HOOKS = """{
  before_cut: [{command: [./drain], lanes: [pair], timeout: 20s, env: {MODE: soft}}, {http: "https://lb.lan/drain"}],
  after_confirm: [{command: [./undrain]}],
  on_failure: [{command: [page, --loud]}]}"""


@pytest.fixture
def story(tmp_path: Path) -> Story:
    return Story(tmp_path)


@pytest.fixture
def fleet(story: Story, capsys: pytest.CaptureFixture[str]) -> Commands:
    return Commands(story, capsys)


def hook(story: Story, hooks: str = HOOKS) -> None:
    path = story.folder / "fleet.yaml"
    path.write_text(f"{path.read_text()}\nhooks: {hooks}\n")


def called(story: Story) -> list[tuple[str, str]]:
    """Each call so far, by name and placement; and they are forgotten."""
    found = [(call.name, told(call)["event"]["about"]["placement"]) for call in story.nodes.hooks.calls]
    story.nodes.hooks.calls.clear()
    return sorted(found)


def told(call: HookCall) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(call.text)
    VALID.validate(value)
    return value


def served(story: Story) -> None:
    """Both lanes run, and their next version is wanted."""
    assert 0 == story.apply().exit
    story.use(story.next_image)


def test_a_first_boot_cuts_nothing_and_tells_when_it_is_proved(fleet: Commands, story: Story) -> None:
    hook(story)
    assert 0 == fleet("apply", "--yes").code
    assert [("after_confirm[0]", "pair-a/pair"), ("after_confirm[0]", "single-3/solo")] == called(story)


def test_a_replacement_asks_first_and_tells_at_last(fleet: Commands, story: Story) -> None:
    served(story)
    hook(story)
    asked: list[int] = []

    def note(call: Call) -> None:
        asked.extend([len(story.nodes.hooks.calls)] if call.operation == "stop" else [])

    story.nodes.on_effect = note
    done = fleet("apply", "--yes")
    assert (0, BOTH) == (done.code, story.running_lanes())
    assert asked
    assert all(asked)
    first = next(call for call in story.nodes.hooks.calls if call.name == "before_cut[0]")
    assert (("./drain",), str(story.folder), 20.0) == (first.command, first.folder, first.timeout_s)
    assert {
        "MODE": "soft",
        "FLEET_EVENT": "hook.before_cut",
        "FLEET_LANE": "pair",
        "FLEET_NODES": "node1 node2",
    }.items() <= (dict(first.given).items())
    assert ("hook.before_cut", 1) == (told(first)["kind"], told(first)["event"]["about"]["nodes"].index("node2"))
    assert [
        ("after_confirm[0]", "pair-a/pair"),
        ("after_confirm[0]", "single-3/solo"),
        ("before_cut[0]", "pair-a/pair"),
        ("before_cut[1]", "pair-a/pair"),
        ("before_cut[1]", "single-3/solo"),
    ] == called(story)
    assert "ok  hook before_cut[0] for pair-a/pair" in done.out


@pytest.mark.parametrize("how", ["fails", "hangs"])
def test_what_says_no_before_the_cut_keeps_the_lane_running(fleet: Commands, story: Story, how: str) -> None:
    served(story)
    hook(story)
    story.nodes.hooks.failing = {"before_cut[0]": "exit code 3: too many sessions"} if how == "fails" else {}
    story.nodes.hooks.hanging = {"before_cut[0]"} if how == "hangs" else set()
    before = story.containers()
    done = fleet("apply", "--yes")
    why = "exit code 3: too many sessions" if how == "fails" else "it did not end within 20 s and was killed"
    assert 6 == done.code
    assert f": hook before_cut[0] for pair-a/pair: {why}\n" in done.out
    assert "pair-a/pair: failed before anything was stopped; the fleet serves what it served before" in done.out
    assert {name for name, state in before.items() if "pair" in name} <= set(story.containers())
    assert [] == [call for call in story.nodes.mutations if call.operation == "stop" and "pair" in call.ref]
    assert BOTH == story.running_lanes()
    assert () == story.quarantined()


def test_a_lane_that_is_held_back_is_tried_again(fleet: Commands, story: Story) -> None:
    served(story)
    hook(story)
    story.nodes.hooks.failing = {"before_cut[0]": "exit code 1"}
    assert 6 == fleet("apply", "--yes").code
    story.nodes.hooks.failing = {}
    assert 0 == fleet("apply", "--yes").code
    assert 0 == fleet("plan", "--detailed-exitcode").code


def test_a_lane_that_is_taken_down_is_asked_for_too(fleet: Commands, story: Story) -> None:
    story.apply()
    hook(story)
    story.nodes.hooks.failing = {"before_cut[1]": "it answered 503"}
    done = fleet("down", "solo", "--yes")
    assert (6, BOTH) == (done.code, story.running_lanes())
    story.nodes.hooks.failing = {}
    assert (0, {"pair": 2}) == (fleet("down", "solo", "--yes").code, story.running_lanes())


def test_what_only_is_told_fails_no_apply(fleet: Commands, story: Story) -> None:
    hook(story)
    story.nodes.hooks.failing = {"after_confirm[0]": "exit code 1"}
    done = fleet("apply", "--yes")
    assert (0, BOTH) == (done.code, story.running_lanes())
    assert "ERR hook after_confirm[0] for pair-a/pair: exit code 1" in done.out


def test_a_failure_is_told_when_what_ran_before_is_back(fleet: Commands, story: Story) -> None:
    served(story)
    hook(story)
    story.nodes.inject(Fault.fail("node3", "start"))
    fleet("apply", "--yes", "--lane", "solo")
    (call,) = [call for call in story.nodes.hooks.calls if call.name == "on_failure[0]"]
    event = told(call)["event"]
    assert ("single-3/solo", True) == (event["about"]["placement"], event["is_as_before"])
    assert "start" in event["faults"][0]["step"]


def test_the_events_of_hooks_are_written_down(fleet: Commands, story: Story, tmp_path: Path) -> None:
    hook(story)
    fleet("apply", "--yes", "--events", str(tmp_path / "events"))
    found = [json.loads(line) for line in (tmp_path / "events").read_text().splitlines()]
    assert 2 == len([event for event in found if event["kind"] == "hook.ended" and event["event"]["ok"]])


def test_hooks_change_no_plan(fleet: Commands, story: Story) -> None:
    before = fleet("plan", "--json").out
    hook(story)
    assert before == fleet("plan", "--json").out


def test_a_controller_that_is_killed_in_a_hook_asks_again(fleet: Commands, story: Story) -> None:
    served(story)
    hook(story)
    story.nodes.hooks.hanging = {"before_cut[0]"}
    story.nodes.after(30.0, lambda nodes: nodes.kill_controller())
    assert story.apply_until_killed()
    story.nodes.hooks.hanging = set()
    story.nodes.hooks.calls.clear()
    assert 0 == fleet("apply", "--yes", "--wait", "60").code
    assert ("before_cut[0]", "pair-a/pair") in called(story)
    assert BOTH == story.running_lanes()


def test_a_secret_that_cannot_be_had_stops_the_cut(fleet: Commands, story: Story) -> None:
    served(story)
    hook(story, "{before_cut: [{http: {secret: 'env:NO_SUCH_VARIABLE'}}]}")
    done = fleet("apply", "--yes")
    assert (6, BOTH) == (done.code, story.running_lanes())
    assert "secret env:NO_SUCH_VARIABLE: the variable is not set here" in done.out
    assert [] == called(story)


def test_no_value_of_a_secret_is_shown(
    fleet: Commands, story: Story, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("LB_TOKEN", "tr0ub4dor-and-3")
    served(story)
    hook(story, "{before_cut: [{command: [x], env: {TOKEN: {secret: 'env:LB_TOKEN'}}}]}")
    story.nodes.hooks.failing = {"before_cut[0]": "exit code 1: TOKEN=tr0ub4dor-and-3"}
    done = fleet("apply", "--yes", "--events", str(tmp_path / "events"))
    assert "tr0ub4dor-and-3" == story.nodes.hooks.calls[0].given["TOKEN"]
    assert "exit code 1: TOKEN=[redacted]" in done.out
    recorded = b"".join(path.read_bytes() for path in story.folder.rglob("*") if path.is_file())
    assert b"tr0ub4dor" not in recorded + (tmp_path / "events").read_bytes() + done.out.encode()
    assert "tr0ub4dor" not in repr(story.nodes.hooks.calls)


def test_the_end_of_what_a_hook_says_is_shown_line_by_line(fleet: Commands, story: Story) -> None:
    served(story)
    hook(story, "{before_cut: [{command: [x]}]}")
    lines = [f"line {number} {'x' * 200}" for number in range(60)]
    story.nodes.hooks.failing = {"before_cut[0]": HookError("exit code 1", "\n".join([*lines, "sessions are open"]))}
    done = fleet("apply", "--yes", "--lane", "solo")
    assert "ERR hook before_cut[0] for single-3/solo: exit code 1\n" in done.out
    assert "      | sessions are open\n" in done.out
    assert "hook before_cut[0] for single-3/solo: exit code 1: sessions are open\n" in done.out
    assert "\ufffd" not in done.out
