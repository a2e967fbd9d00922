"""`--events FILE`: what commands that change something write down, line by line, by the published schema."""

import json
import os
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped] # it has no types of its own
import pytest

from reconciler.cli import recording
from reconciler.core.events import Event, RunEnded
from reconciler.views.event_schema import event_schema
from tests.lifecycle.commanding import Commands
from tests.lifecycle.harness import Story

VALID = jsonschema.Draft202012Validator(event_schema())


@pytest.fixture
def story(tmp_path: Path) -> Story:
    return Story(tmp_path)


@pytest.fixture
def fleet(story: Story, capsys: pytest.CaptureFixture[str]) -> Commands:
    return Commands(story, capsys)


def read(text: str) -> list[dict[str, Any]]:
    """The events, each as the schema has it, numbered without gaps."""
    found = [json.loads(line) for line in text.splitlines()]
    for event in found:
        VALID.validate(event)
    assert list(range(1, len(found) + 1)) == [event["sequence"] for event in found]
    return found


def kinds(events: list[dict[str, Any]]) -> list[str]:
    return [event["kind"] for event in events]


def test_an_apply_writes_its_whole_story_under_the_id_of_its_run(fleet: Commands, tmp_path: Path) -> None:
    done = fleet("apply", "--yes", "--json", "--events", str(tmp_path / "events"))
    events = read((tmp_path / "events").read_text())
    assert ("run.started", "run.ended") == (events[0]["kind"], events[-1]["kind"])
    assert {done.json["result"]["run"]} == {event["run"] for event in events}
    assert done.json["plan"]["id"] == events[0]["event"]["plan"]["id"]
    ended = {
        event["event"]["step"]["id"]: event["event"]["status"] for event in events if event["kind"] == "step.ended"
    }
    assert done.json["result"]["steps"] == ended


def test_the_next_command_appends(fleet: Commands, tmp_path: Path) -> None:
    log = tmp_path / "events"
    fleet("apply", "--yes", "--events", str(log))
    first = log.read_text()
    assert 0 == fleet("apply", "--yes", "--events", str(log)).code
    assert log.read_text().startswith(first)
    assert ["run.ended"] == kinds(read(log.read_text()[len(first) :]))


def test_events_on_standard_output_are_alone_there(fleet: Commands) -> None:
    done = fleet("apply", "--yes", "--events", "-")
    assert "run.ended" == read(done.out)[-1]["kind"]
    assert "Plan: " in done.err


def test_a_file_that_cannot_be_written_is_refused_before_anything_happens(
    fleet: Commands, story: Story, tmp_path: Path
) -> None:
    done = fleet("apply", "--yes", "--events", str(tmp_path / "nowhere" / "events"))
    assert (1, ()) == (done.code, tuple(story.nodes.calls))
    assert "nowhere/events: no such file or directory" in done.err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_a_full_disk_stops_no_apply_and_is_said_once(fleet: Commands, story: Story) -> None:
    done = fleet("apply", "--yes", "--events", "/dev/full")
    assert (0, {"pair": 2, "solo": 1}) == (done.code, story.running_lanes())
    assert 1 == done.err.count("events are not written to /dev/full any more")


def test_a_reader_of_events_that_goes_away_stops_no_apply(fleet: Commands, story: Story, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    story.nodes.after(1.0, lambda nodes: os.close(reader))
    done = fleet("apply", "--yes", "--events", str(pipe))
    assert (0, {"pair": 2, "solo": 1}) == (done.code, story.running_lanes())


def test_a_pipe_that_nobody_reads_is_refused_before_anything_happens(
    fleet: Commands, story: Story, tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "pipe")
    done = fleet("apply", "--yes", "--events", str(tmp_path / "pipe"))
    assert (1, ()) == (done.code, tuple(story.nodes.calls))
    assert "pipe: nobody reads this pipe" in done.err


def test_a_reader_of_events_that_stops_reading_stops_no_apply(
    fleet: Commands, story: Story, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recording, "UNREAD_S", 0.05)
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    with (tmp_path / "pipe").open("wb", buffering=0) as filling:
        os.set_blocking(filling.fileno(), False)
        while filling.write(b"x" * 4096):
            pass
        done = fleet("apply", "--yes", "--events", str(tmp_path / "pipe"))
    os.close(reader)
    assert (0, {"pair": 2, "solo": 1}) == (done.code, story.running_lanes())
    assert 1 == done.err.count("any more (nobody has read from it for 0.05 s)")


def test_a_line_that_was_cut_short_spoils_no_other(fleet: Commands, tmp_path: Path) -> None:
    (tmp_path / "events").write_text('{"schema":"fleet.ev')
    fleet("apply", "--yes", "--events", str(tmp_path / "events"))
    cut, _, rest = (tmp_path / "events").read_text().partition("\n")
    assert ('{"schema":"fleet.ev', "run.started") == (cut, read(rest)[0]["kind"])


def test_a_run_that_never_began_tells_its_end_all_the_same(fleet: Commands, story: Story, tmp_path: Path) -> None:
    fleet("hold", "pair")
    fleet("hold", "solo")
    log = tmp_path / "events"
    assert 3 == fleet("apply", "--yes", "--events", str(log)).code
    (event,) = read(log.read_text())
    assert ("run.ended", 3) == (event["kind"], event["event"]["exit_code"])


def test_the_end_of_what_a_policy_forbids_says_why(fleet: Commands, story: Story, tmp_path: Path) -> None:
    path = story.folder / "fleet.yaml"
    path.write_text(f"{path.read_text()}\npolicies: {{files: [none.py]}}\n")
    assert 3 == fleet("apply", "--yes", "--events", str(tmp_path / "events")).code
    heard: list[Event] = []
    story.apply(heard.append)
    (event,) = read((tmp_path / "events").read_text())
    assert ("run.ended", 3) == (event["kind"], event["event"]["exit_code"])
    assert [RunEnded("", 3, event["event"]["summary"])] == heard
    assert "refused by policy none.py: the policy itself is broken" in event["event"]["summary"]


def test_commands_that_change_what_is_recorded_tell_of_it(
    fleet: Commands, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "events"
    export = tmp_path / "export.json"
    fleet("hold", "pair", "--reason", "a demo", "--events", str(log))
    fleet("release", "pair", "--events", str(log))
    fleet("state", "export", str(export))
    monkeypatch.setenv("FLEET_STATE", str(tmp_path / "elsewhere"))
    assert 0 == fleet("state", "import", str(export), "--events", str(log)).code
    events = [json.loads(line) for line in log.read_text().splitlines()]
    for event in events:
        VALID.validate(event)
    assert ["hold.placed", "hold.released", "state.imported"] == kinds(events)
    assert "a demo" == events[0]["event"]["reason"]
    assert 3 == len({event["run"] for event in events})


def test_the_schema_refuses_a_kind_that_is_none() -> None:
    with pytest.raises(jsonschema.ValidationError):
        VALID.validate({"schema": "fleet.event/1", "run": "r", "sequence": 1, "at_s": 1.0, "kind": "x", "event": {}})
