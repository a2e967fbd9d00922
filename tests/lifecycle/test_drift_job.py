"""`fleet drift` as a job: what it remembers, whom it tells, which exit code; and that it touches nothing on a node."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.testing import Fault
from reconciler.views.drift_metrics import last_success
from state import open_store, read_store
from tests.inbox import POISON, Inbox, opened
from tests.lifecycle.commanding import Commands, Said
from tests.lifecycle.harness import Story

RANK = "fleet-pair-r1-v1"


@pytest.fixture
def story(tmp_path: Path) -> Story:
    made = Story(tmp_path / "spec")
    made.apply()
    return made


@pytest.fixture
def fleet(story: Story, capsys: pytest.CaptureFixture[str]) -> Commands:
    return Commands(story, capsys)


@pytest.fixture
def inbox() -> Iterator[Inbox]:
    with opened() as server:
        yield server


def kill(story: Story) -> None:
    story.nodes.node("node2").kill(RANK)


def kept(story: Story) -> list[dict[str, object]]:
    """What is kept of earlier reports, the newest first."""
    store = read_store(story.folder / ".fleet")
    assert store is not None
    texts = store.reports(9)
    store.close()
    return [json.loads(text) for _, text in texts]


def test_looking_makes_no_call_that_changes_a_node_and_takes_no_lease(fleet: Commands, story: Story) -> None:
    kill(story)
    before = len(story.nodes.mutations)
    for words in ("", "--probe", "--json", "--no-record"):
        assert 2 == fleet("drift", *words.split()).code
    assert before == len(story.nodes.mutations)


def test_each_look_leaves_what_the_next_wants_to_know(fleet: Commands, story: Story) -> None:
    fleet("drift")
    kill(story)
    fleet("drift")
    newest, oldest = kept(story)
    assert ({}, 0) == (oldest["known"], oldest["unreachable"])
    assert ["pair-a/pair/1@node2"] == [*newest["known"].values()]  # type: ignore[attr-defined]


def test_a_look_that_is_to_leave_nothing_leaves_nothing(fleet: Commands, story: Story) -> None:
    assert 0 == fleet("drift", "--no-record").code
    assert [] == kept(story)


def test_deleting_what_was_kept_changes_no_finding(fleet: Commands, story: Story) -> None:
    kill(story)
    first = fleet("drift", "--json").json["findings"]
    for path in (story.folder / ".fleet").iterdir():
        path.unlink()
    assert [row["id"] for row in first] == [row["id"] for row in fleet("drift", "--json").json["findings"]]


@pytest.mark.parametrize("broken", ["damaged", "a file in its place", "not to be written"])
def test_a_state_that_is_no_use_is_said_once_and_fails_nothing(
    fleet: Commands, story: Story, broken: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = story.folder / ".fleet"
    if broken == "damaged":
        (folder / "state.db").write_bytes(b"nonsense" * 1000)
    elif broken == "a file in its place":
        monkeypatch.setenv("FLEET_STATE", str(story.folder / "fleet.yaml"))
    else:
        monkeypatch.setenv("FLEET_STATE", "/proc/nowhere")  # nobody makes a folder there, root neither
    kill(story)
    said = fleet("drift")
    assert (2, 1) == (said.code, len(re.findall("^fleet: ", said.err, re.MULTILINE))), said.err
    assert re.search("not known: |not kept", said.err)


@pytest.mark.parametrize(
    ("fail_on", "code"), [("runtime", 2), ("config,identity", 0), ("config,host,runtime", 2), ("outage", 0)]
)
def test_findings_of_other_classes_are_reported_and_do_not_count(
    fleet: Commands, story: Story, fail_on: str, code: int
) -> None:
    story.nodes.node("node1").run("somebodys", story.behaviour)  # type: ignore[arg-type]
    kill(story)
    said = fleet("drift", "--fail-on", fail_on, "--json")
    if fail_on != "outage":  # how bad it is, is told elsewhere
        assert code == said.code
    assert "pair-a/pair/1@node2" in {row["address"] for row in said.json["findings"]}


def test_a_class_that_does_not_exist_is_wrong_use(fleet: Commands) -> None:
    said = fleet("drift", "--fail-on", "runtme")
    assert (1, "") == (said.code, said.out)
    assert "did you mean runtime?" in said.err


def test_a_report_that_cannot_be_written_is_an_error_and_news_and_metrics_are_told_all_the_same(
    fleet: Commands, story: Story, inbox: Inbox, tmp_path: Path
) -> None:
    kill(story)
    metrics = tmp_path / "fleet.prom"
    said = fleet("drift", "--out", "/nowhere/report", "--notify", inbox.url, "--metrics", str(metrics))
    assert (1, "") == (said.code, said.out)
    assert "/nowhere/report: no such file" in said.err
    assert 1 == len(inbox.messages)
    assert last_success(metrics.read_text(), "lab")


# time


def test_what_there_is_no_time_for_is_named_and_what_is_known_is_reported(fleet: Commands, story: Story) -> None:
    kill(story)
    story.nodes.inject(Fault.hang("node3", "http", nth=None))
    said = fleet("drift", "--within", "5", "--json")
    assert 4 == said.code
    assert ["whether single-3/solo answers"] == said.json["missing"]
    assert "there was no time to see whether single-3/solo answers" in said.err
    assert "pair-a/pair/1@node2" in {row["address"] for row in said.json["findings"]}


def test_one_engine_that_hangs_hides_no_other_lane(fleet: Commands, story: Story) -> None:
    story.nodes.inject(Fault.hang("node3", "http", nth=None))
    story.nodes.inject(Fault.fail("node1", "http", nth=None))
    said = fleet("drift", "--within", "5", "--json").json
    assert ["whether single-3/solo answers"] == said["missing"]
    assert ["pair-a/pair health"] == [f"{row['address']} {row['field']}" for row in said["findings"]]


def test_a_node_that_hangs_leaves_time_for_the_others(fleet: Commands, story: Story) -> None:
    kill(story)
    story.nodes.node("node3").cut_link()
    said = fleet("drift", "--within", "10", "--deadline", "60", "--json")
    assert 4 == said.code
    assert "no time" not in said.err
    assert {"node3", "pair-a/pair/1@node2"} <= {row["address"] for row in said.json["findings"]}


# news


def look(fleet: Commands, inbox: Inbox, *words: str) -> Said:
    said = fleet("drift", "--notify", inbox.url, *words)
    assert POISON not in said.out + said.err
    return said


def test_news_are_told_when_findings_change_and_once_when_all_is_well_again(
    fleet: Commands, story: Story, inbox: Inbox
) -> None:
    assert 0 == look(fleet, inbox).code
    assert [] == inbox.messages
    kill(story)
    assert 2 == look(fleet, inbox).code
    assert 2 == look(fleet, inbox).code
    (first,) = inbox.messages
    assert "fleet lab: " in first["title"]
    assert "pair-a/pair/1@node2" in first["message"]
    assert "failure" == first["type"]
    story.apply()
    for _ in range(2):
        assert 0 == look(fleet, inbox).code
    assert [("fleet lab: all is as wanted again", "success")] == [
        (item["title"], item["type"]) for item in inbox.messages[1:]
    ]


def test_who_could_not_be_told_is_told_with_the_next_look_and_the_exit_code_is_that_of_the_fleet(
    fleet: Commands, story: Story, inbox: Inbox
) -> None:
    kill(story)
    inbox.status = 500
    said = look(fleet, inbox)
    assert 2 == said.code
    assert "json:// (address 1) was not told" in said.err
    inbox.status = 200
    look(fleet, inbox)
    look(fleet, inbox)
    assert 2 == len(inbox.messages)


def test_each_address_is_told_what_is_news_to_it(fleet: Commands, story: Story, inbox: Inbox, tmp_path: Path) -> None:
    kill(story)
    look(fleet, inbox)
    others = tmp_path / "addresses"
    others.write_text(f"# who is told\n\n{inbox.url}/more\n")
    look(fleet, inbox, "--notify-file", str(others))
    assert 2 == len(inbox.messages)


def test_news_are_of_the_findings_that_count(fleet: Commands, story: Story, inbox: Inbox) -> None:
    kill(story)
    assert 0 == look(fleet, inbox, "--fail-on", "identity").code
    assert [] == inbox.messages


def test_a_url_is_nowhere_in_the_state(fleet: Commands, story: Story, inbox: Inbox) -> None:
    kill(story)
    look(fleet, inbox)
    state = b"".join(path.read_bytes() for path in (story.folder / ".fleet").iterdir())
    assert b"drift.told." in state
    assert POISON.encode() not in state


def test_the_variable_names_addresses_too(
    fleet: Commands, story: Story, inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    kill(story)
    monkeypatch.setenv("FLEET_NOTIFY", f"{inbox.url} {inbox.url}/more")
    fleet("drift")
    assert 2 == len(inbox.messages)


def test_an_address_that_nobody_knows_is_wrong_use_before_anything_is_looked_at(fleet: Commands, story: Story) -> None:
    before = len(story.nodes.calls)
    said = fleet("drift", "--notify", f"nope://{POISON}")
    assert (1, "", before) == (said.code, said.out, len(story.nodes.calls))
    assert "nope:// (address 1) is no URL that apprise knows" in said.err
    assert POISON not in said.err


# metrics


def test_metrics_are_whole_and_for_everybody_to_read(fleet: Commands, story: Story, tmp_path: Path) -> None:
    metrics = tmp_path / "fleet.prom"
    kill(story)
    assert 2 == fleet("drift", "--metrics", str(metrics)).code
    assert 0o644 == metrics.stat().st_mode & 0o777
    assert 'fleet_lane_up{cluster="pair-a",fleet="lab",lane="pair"} 0.0' in metrics.read_text()
    assert ["fleet.prom", "spec"] == sorted(path.name for path in tmp_path.iterdir())


def test_metrics_that_cannot_be_written_are_a_warning(fleet: Commands) -> None:
    said = fleet("drift", "--metrics", "/nowhere/fleet.prom")
    assert 0 == said.code
    assert "no metrics are written: /nowhere/fleet.prom: no such file or directory" in said.err


def test_the_store_of_a_look_is_let_go_of(fleet: Commands, story: Story) -> None:
    fleet("drift")
    store = open_store(story.folder / ".fleet", busy_s=0.1)
    store.remember("a", "b")
    store.close()
