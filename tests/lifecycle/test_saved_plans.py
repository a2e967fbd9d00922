"""A saved plan is carried out exactly, once, and only while what its steps rest on has not changed."""

import asyncio
import json
import shutil
import stat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reconciler.fleet import Fleet
from reconciler.saved import SavedPlanError, _seal, read, saved_text
from tests.lifecycle.commanding import Commands
from tests.lifecycle.harness import QUAD, Story

PAIR_AND_SOLO_LANES = {"pair": 2, "solo": 1}


@pytest.fixture
def story(tmp_path: Path) -> Story:
    (tmp_path / "spec").mkdir()
    return Story(tmp_path / "spec")


@pytest.fixture
def fleet(story: Story, capsys: pytest.CaptureFixture[str]) -> Commands:
    return Commands(story, capsys)


@pytest.fixture
def file(fleet: Commands, tmp_path: Path) -> Path:
    """A saved plan that boots `pair` on node1 and node2, and `solo` on node3."""
    path = tmp_path / "night.plan"
    assert 0 == fleet("plan", "--out", str(path)).code
    return path


def apply(fleet: Commands, file: Path, *words: str) -> Any:
    return fleet("apply", str(file), "--yes", "--json", *words)


def test_exactly_the_saved_plan_is_carried_out(fleet: Commands, story: Story, file: Path) -> None:
    done = apply(fleet, file)
    assert (0, read(file).plan.id, read(file).id) == (done.code, done.json["plan"]["id"], done.json["saved"])
    assert PAIR_AND_SOLO_LANES == story.running_lanes()
    assert story.plan().is_settled


def test_the_file_is_for_its_owner_only_and_nothing_is_left_beside_it(file: Path) -> None:
    assert 0o600 == stat.S_IMODE(file.stat().st_mode)
    assert [file] == [path for path in file.parent.iterdir() if "night" in path.name]


def test_a_file_that_cannot_be_written_leaves_the_old_one(fleet: Commands, file: Path, tmp_path: Path) -> None:
    before = file.read_text()
    assert 1 == fleet("plan", "--out", str(tmp_path / "nowhere" / "night.plan")).code
    assert before == file.read_text()


def test_two_files_of_one_plan_are_two_saved_plans(fleet: Commands, file: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.plan"
    fleet("plan", "--out", str(other))
    assert read(file).plan == read(other).plan
    assert read(file).id != read(other).id


def test_a_saved_plan_is_applied_once_and_the_second_time_names_the_run(
    fleet: Commands, story: Story, file: Path
) -> None:
    run = apply(fleet, file).json["result"]["run"]
    before = len(story.nodes.mutations)
    again = apply(fleet, file)
    assert (3, before) == (again.code, len(story.nodes.mutations))
    assert f"taken by run {run}" in again.json["result"]["summary"]
    assert f"fleet show {run}" in fleet("apply", str(file), "--yes").out


def test_without_the_record_the_plan_itself_refuses_to_be_applied_again(
    fleet: Commands, story: Story, file: Path
) -> None:
    apply(fleet, file)
    shutil.rmtree(story.folder / ".fleet")
    before = len(story.nodes.mutations)
    again = apply(fleet, file)
    assert (3, before) == (again.code, len(story.nodes.mutations))
    assert {"pair-a/pair", "single-3/solo"} == {item["gang"] for item in again.json["stale"]}


def test_a_plan_that_another_controller_takes_meanwhile_is_carried_out_by_one(
    fleet: Commands, story: Story, file: Path
) -> None:
    """Both have looked; the record decides."""
    saved = read(file)

    async def twice(fleet: Fleet) -> list[Any]:
        return [await fleet.apply(saved.plan, saved_id=saved.id) for _ in range(2)]

    first, second = story.run(twice)
    assert (0, 3) == (first.exit, second.exit)
    assert f"taken by run {first.run_id}" in second.summary


def test_an_interrupted_saved_plan_is_not_applied_again(fleet: Commands, story: Story, file: Path) -> None:
    saved = read(file)

    async def interrupted(fleet: Fleet) -> Any:
        stop = asyncio.Event()
        asyncio.get_running_loop().call_later(1.0, stop.set)
        return await fleet.apply(saved.plan, stop=stop, saved_id=saved.id)

    first = story.run(interrupted)
    done = apply(fleet, file)
    assert (130, 3) == (first.exit, done.code)
    assert f"taken by run {first.run_id}" in done.json["result"]["summary"]
    assert 0 == fleet("apply", "--yes").code


def power_cycle(story: Story, node: str) -> None:
    story.nodes.node(node).power_off()
    story.nodes.node(node).power_on()


def test_a_reboot_makes_the_plan_stale_and_is_named(fleet: Commands, story: Story, file: Path) -> None:
    power_cycle(story, "node1")
    done = fleet("apply", str(file), "--yes")
    assert (3, {}) == (done.code, story.running_lanes())
    assert "pair-a/pair/stage/node1/create: boot id (node1 was rebooted): " in done.out
    assert "still valid, and applied with `--only-valid`: single-3/solo" in done.out


def test_stale_steps_are_told_as_json_with_step_field_then_and_now(
    fleet: Commands, story: Story, tmp_path: Path
) -> None:
    story.apply()
    story.place(QUAD)
    file = tmp_path / "quad.plan"
    fleet("plan", "--out", str(file))
    story.nodes.node("node3").kill("fleet-solo-r0-v1")
    done = apply(fleet, file)
    first = done.json["stale"][0]
    assert 3 == done.code == done.json["exit"]
    assert {
        "step": "single-3/solo/cut/node3/stop/fleet-solo-r0-v1",
        "gang": "single-3/solo",
        "node": "node3",
        "field": "container fleet-solo-r0-v1 state",
        "then": "running",
        "now": "exited",
    } == first
    assert {"pair": 2} == story.running_lanes()


def test_with_only_valid_the_other_groups_are_applied_and_it_ends_with_3(
    fleet: Commands, story: Story, file: Path
) -> None:
    power_cycle(story, "node1")
    done = apply(fleet, file, "--only-valid")
    assert (3, {"solo": 1}) == (done.code, story.running_lanes())
    assert ["pair-a/pair"] == [item["gang"] for item in done.json["plan"]["withheld"]]
    assert "stale on node1: boot id" in done.json["result"]["summary"]
    assert 3 == apply(fleet, file, "--only-valid").code


def test_only_valid_of_a_plan_that_is_stale_throughout_does_nothing(fleet: Commands, story: Story, file: Path) -> None:
    power_cycle(story, "node1")
    power_cycle(story, "node3")
    done = apply(fleet, file, "--only-valid")
    assert (3, ()) == (done.code, story.nodes.mutations)


def test_only_valid_of_a_plan_that_still_holds_applies_all_of_it(fleet: Commands, story: Story, file: Path) -> None:
    assert 0 == apply(fleet, file, "--only-valid").code
    assert PAIR_AND_SOLO_LANES == story.running_lanes()


def test_a_node_that_is_off_makes_its_steps_stale(fleet: Commands, story: Story, file: Path) -> None:
    story.nodes.node("node3").power_off()
    done = apply(fleet, file)
    assert 3 == done.code
    assert {"single-3/solo"} == {item["gang"] for item in done.json["stale"]}


def test_a_spec_that_has_changed_since_is_refused(fleet: Commands, story: Story, file: Path) -> None:
    story.edit("stop_grace: 5s", "stop_grace: 6s")
    done = fleet("apply", str(file), "--yes")
    assert (3, ()) == (done.code, story.nodes.mutations)
    assert "the spec has changed since" in done.out


def test_a_plan_of_another_fleet_is_refused(fleet: Commands, story: Story, file: Path) -> None:
    found = read(file)
    file.write_text(saved_text(replace(found, plan=replace(found.plan, fleet="elsewhere"))))
    done = fleet("apply", str(file), "--yes")
    assert (3, ()) == (done.code, story.nodes.mutations)
    assert "for fleet elsewhere" in done.out


def edited(**fields: object) -> Callable[[str], str]:
    return lambda text: json.dumps({**json.loads(text), **fields})


DAMAGED: dict[str, tuple[Callable[[str], str], str]] = {
    "cut off": (lambda text: text[: len(text) // 2], "it is not JSON"),
    "empty": (lambda text: "", "it is not JSON"),
    "another document": (lambda text: "[1, 2]", "it does not say schema fleet.saved/1"),
    "nested without end": (lambda text: "[" * 200_000, "it is not JSON"),
    "a newer schema": (edited(schema="fleet.saved/2"), "has schema fleet.saved/2"),
    "another plan": (edited(plan={}), "its seal does not hold"),
    "no seal": (edited(seal=None), "its seal does not hold"),
    "one word": (lambda text: text.replace('"state": "', '"state": "x', 1).replace('"node1"', '"node4"', 1), "seal"),
}


@pytest.mark.parametrize("what", DAMAGED)
def test_a_file_that_is_damaged_edited_or_newer_is_an_error_and_changes_nothing(
    fleet: Commands, story: Story, file: Path, what: str
) -> None:
    change, told = DAMAGED[what]
    file.write_text(change(file.read_text()))
    for command in (("apply", str(file), "--yes"), ("show", str(file))):
        done = fleet(*command)
        assert (1, ()) == (done.code, story.nodes.mutations)
        assert told in done.err


def test_a_file_that_is_no_text_is_an_error(fleet: Commands, file: Path) -> None:
    file.write_bytes(b"\xff\x00\xfe")
    assert 1 == fleet("apply", str(file), "--yes").code


def test_a_file_that_is_not_there_is_an_error(fleet: Commands, tmp_path: Path) -> None:
    done = fleet("apply", str(tmp_path / "none.plan"), "--yes")
    assert 1 == done.code
    assert "none.plan: no such file" in done.err


def test_a_plan_of_a_newer_version_with_a_good_seal_is_an_error_that_names_the_field(file: Path) -> None:
    fields = json.loads(file.read_text())
    fields.pop("seal")
    fields["plan"]["steps"][0]["window"] = "night"
    file.write_text(json.dumps({**fields, "seal": _seal(fields)}))
    with pytest.raises(SavedPlanError, match=r"plan\.steps\.0\.window"):
        read(file)


def test_the_file_reformatted_by_a_tool_is_still_the_plan(file: Path) -> None:
    before = read(file)
    file.write_text(json.dumps(json.loads(file.read_text()), sort_keys=True))
    assert before == read(file)


def test_show_shows_the_saved_plan_as_plan_did(fleet: Commands, file: Path) -> None:
    plain, as_json = fleet("show", str(file)), fleet("show", str(file), "--json")
    assert (0, 0) == (plain.code, as_json.code)
    assert f"saved plan {read(file).id}, made " in plain.out
    assert "+ boot    pair-a/pair    wanted, not running" in plain.out
    assert json.loads(file.read_text()) == as_json.json
    assert fleet("show", str(file), "--format", "markdown").out.startswith("### fleet plan: ")


def test_a_plan_that_was_narrowed_is_saved_narrowed(fleet: Commands, story: Story, tmp_path: Path) -> None:
    file = tmp_path / "solo.plan"
    said = fleet("plan", "--lane", "solo", "--out", str(file)).out
    assert f"Run `fleet apply {file}` to carry it out." in said
    assert 0 == apply(fleet, file).code
    assert {"solo": 1} == story.running_lanes()


def test_a_saved_plan_takes_no_targets_and_a_new_one_is_valid_throughout(fleet: Commands, file: Path) -> None:
    assert 1 == fleet("apply", str(file), "--lane", "solo", "--yes").code
    assert 1 == fleet("apply", "--only-valid", "--yes").code


def test_a_hold_placed_after_the_plan_was_saved_counts(fleet: Commands, story: Story, file: Path) -> None:
    fleet("hold", "pair")
    assert 3 == apply(fleet, file).code
    assert {"solo": 1} == story.running_lanes()


def test_show_run_tells_every_step(fleet: Commands, file: Path) -> None:
    run = apply(fleet, file).json["result"]["run"]
    shown, steps = fleet("show", run), fleet("show", run, "--json").json["steps"]
    assert 0 == shown.code
    assert len(read(file).plan.steps) == len(steps)
    assert {"applied"} == {step["result"] for step in steps}
    assert not any(step["open"] for step in steps)
    assert f"run {run}: `fleet apply` of fleet " in shown.out
    assert "applied     start    fleet-solo-r0-v1.unproved on node3" in shown.out


def test_show_of_a_run_that_is_not_recorded_is_an_error(fleet: Commands) -> None:
    done = fleet("show", "0123456789ab")
    assert 1 == done.code
    assert "no run 0123456789ab is recorded" in done.err
