"""What a person holds, and what failed before, is left alone; the rest goes on; it is said everywhere."""

import json
import shutil
import time
from pathlib import Path

import pytest

import state
from reconciler.core.events import Event, RunStarted
from reconciler.holds import place
from tests.lifecycle.commanding import Commands
from tests.lifecycle.harness import QUAD, Story


@pytest.fixture
def story(tmp_path: Path) -> Story:
    return Story(tmp_path)


@pytest.fixture
def fleet(story: Story, capsys: pytest.CaptureFixture[str]) -> Commands:
    return Commands(story, capsys)


def test_a_held_lane_is_left_alone_and_the_others_go_on(fleet: Commands, story: Story) -> None:
    assert 0 == fleet("hold", "pair", "--for", "4h", "--reason", "a demo").code
    done = fleet("apply", "--yes", "--json")
    assert (3, 3, {"solo": 1}) == (done.code, done.json["exit"], story.running_lanes())
    assert "withheld: pair-a/pair: lane pair is held by " in done.json["result"]["summary"]
    assert "a demo" in done.json["plan"]["withheld"][0]["why"]


def test_when_all_is_held_nothing_is_done_and_nobody_is_asked(fleet: Commands, story: Story) -> None:
    fleet("hold", "pair")
    fleet("hold", "node3")
    done = fleet("apply")
    assert (3, ()) == (done.code, story.nodes.mutations)
    assert "Apply this plan?" not in done.out


def test_a_hold_that_is_placed_while_a_person_thinks_counts(
    fleet: Commands, story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def yes_at_last() -> str:
        for lane in ("pair", "solo"):
            place(story.load(), "lane", lane, "wait", None)
        return "y\n"

    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("reconciler.cli.carrying._line_typed", yes_at_last)
    done = fleet("apply")
    assert (3, ()) == (done.code, story.nodes.mutations)
    assert "withheld: pair-a/pair: lane pair is held by " in done.out.partition("[y/N] ")[2]


def test_a_hold_that_is_placed_while_an_apply_is_under_way_does_not_stop_it(fleet: Commands, story: Story) -> None:
    def placing(event: Event) -> None:
        if isinstance(event, RunStarted):
            place(story.load(), "lane", "pair", "late", None)

    assert 0 == story.apply(placing).exit
    assert {"pair": 2, "solo": 1} == story.running_lanes()
    assert "lane pair is held by " in fleet("holds").out


def test_released_it_goes_on(fleet: Commands, story: Story) -> None:
    fleet("hold", "pair")
    fleet("apply", "--yes")
    assert 0 == fleet("release", "pair").code
    assert 0 == fleet("apply", "--yes").code
    assert {"pair": 2, "solo": 1} == story.running_lanes()


def test_a_hold_on_a_lane_that_would_make_room_keeps_what_would_take_its_place_out(
    fleet: Commands, story: Story
) -> None:
    story.apply()
    story.place(QUAD)
    fleet("hold", "solo")
    assert 3 == fleet("apply", "--yes").code
    assert {"pair": 2, "solo": 1} == story.running_lanes()


@pytest.mark.parametrize("what", ["pair", "pair-a", "node2"], ids=["lane", "cluster", "node"])
def test_a_lane_a_cluster_and_a_node_can_be_held(fleet: Commands, story: Story, what: str) -> None:
    fleet("hold", what)
    assert 3 == fleet("apply", "--yes").code
    assert {"solo": 1} == story.running_lanes()


def test_down_leaves_what_is_held_alone(fleet: Commands, story: Story) -> None:
    story.apply()
    fleet("hold", "pair")
    assert 3 == fleet("down", "pair", "--yes").code
    assert 3 == fleet("down", "--all", "--yes").code
    assert {"pair": 2} == story.running_lanes()


def test_a_hold_that_has_lapsed_holds_nothing(fleet: Commands, story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    fleet("hold", "pair", "--for", "1h")
    now = time.time()
    monkeypatch.setattr("time.time", lambda: now + 3601)
    assert "Nothing is held.\n" == fleet("holds").out
    assert 0 == fleet("apply", "--yes").code


def test_plan_and_status_show_holds_and_the_steps_stay_in_the_plan(fleet: Commands) -> None:
    before = fleet("plan", "--json").json
    fleet("hold", "pair", "--reason", "a demo")
    after = fleet("plan", "--json").json
    assert (before["id"], before["steps"]) == (after["id"], after["steps"])
    assert [("pair-a/pair", "hold")] == [(item["gang"], item["kind"]) for item in after["withheld"]]
    text, markdown = fleet("plan").out, fleet("plan", "--format", "markdown").out
    assert "withheld: shown below" in text
    assert "+ boot    pair-a/pair    wanted, not running (withheld)" in text
    assert "- **withheld** `pair-a/pair`: lane pair is held by " in markdown
    assert "held: lane pair is held by " in fleet("status").out
    assert [("lane", "pair", "a demo")] == [
        (item["kind"], item["name"], item["reason"]) for item in fleet("status", "--json").json["holds"]
    ]


def test_deleting_the_state_changes_no_plan_and_forgets_the_hold(fleet: Commands, story: Story) -> None:
    fleet("hold", "pair")
    before = fleet("plan", "--json").json
    shutil.rmtree(story.folder / ".fleet")
    assert {**before, "withheld": []} == fleet("plan", "--json").json


def test_holds_that_cannot_be_read_change_no_plan_and_stop_an_apply(fleet: Commands, story: Story) -> None:
    fleet("hold", "pair")
    steps = fleet("plan", "--json").json["steps"]
    (story.folder / ".fleet" / "state.db").write_bytes(b"this is not a database at all, it is a text" * 100)
    said = fleet("plan", "--json")
    assert (0, steps) == (said.code, said.json["steps"])
    assert "holds are not shown in this plan" in said.err
    assert 1 == fleet("apply", "--yes").code
    assert () == story.nodes.mutations


def failed(story: Story, lane: str) -> None:
    """Record that the version that the spec asks for has failed."""
    fleet = story.load()
    gang = next(gang for gang in fleet.desired.gangs if gang.lane == lane)
    store = fleet.open_state()
    store.begin_run(state.Run("8a2f01c4de77", "apply", "lab", "f", "p", None, "ops", "laptop", 1.0))
    store.quarantine(state.Quarantine(gang.address, gang.fingerprint, "rank 1 exited 137", "8a2f01c4de77", 2.0))
    store.end_run("8a2f01c4de77", 6, 3.0)
    store.close()


def test_a_version_in_quarantine_is_not_tried_again_until_asked_to(fleet: Commands, story: Story) -> None:
    failed(story, "pair")
    done = fleet("apply", "--yes", "--json")
    assert (3, {"solo": 1}) == (done.code, story.running_lanes())
    assert "rank 1 exited 137" in done.json["plan"]["withheld"][0]["why"]
    assert "not tried again: pair-a/pair: this version was put aside at " in fleet("status").out
    assert 0 == fleet("apply", "--yes", "--retry").code
    assert {"pair": 2, "solo": 1} == story.running_lanes()


def test_another_version_is_tried(fleet: Commands, story: Story) -> None:
    failed(story, "pair")
    story.edit("stop_grace: 5s", "stop_grace: 6s\n    env: {A: b}")
    assert 0 == fleet("apply", "--yes").code
    assert "not tried again" not in fleet("status").out


def test_retry_lifts_no_hold(fleet: Commands, story: Story) -> None:
    fleet("hold", "pair")
    assert 3 == fleet("apply", "--yes", "--retry").code
    assert {"solo": 1} == story.running_lanes()


def test_hold_and_release_as_json(fleet: Commands) -> None:
    placed = fleet("hold", "node3", "--for", "30m", "--reason", "a fan", "--json").json
    assert ("node", "node3", "a fan", 1800) == (
        placed["kind"],
        placed["name"],
        placed["reason"],
        round(placed["expires_at"] - placed["placed_at"]),
    )
    assert [placed] == fleet("holds", "--json").json == fleet("hold", "--json").json
    assert {"released": True, "hold": placed} == fleet("release", placed["id"], "--json").json
    assert [] == json.loads(fleet("holds", "--json").out)
