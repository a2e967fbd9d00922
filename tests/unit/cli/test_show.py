"""`fleet show RUN`: one recorded run, whatever became of it. No node is contacted."""

from pathlib import Path

import pytest

from state import Run
from tests.lifecycle.commanding import Commands
from tests.lifecycle.harness import Story

RUN = Run("8a2f01c4de77", "apply", "lab", "f", "1a2b3c4d5e6f", "4f2c1ab09d3e77", "ops", "laptop", 1_800_000_000.0)


@pytest.fixture
def story(tmp_path: Path) -> Story:
    return Story(tmp_path)


@pytest.fixture
def fleet(story: Story, capsys: pytest.CaptureFixture[str]) -> Commands:
    return Commands(story, capsys)


@pytest.fixture(autouse=True)
def died(story: Story) -> None:
    """A run that failed in one step and died in another."""
    store = story.load().open_state()
    store.begin_run(RUN)
    for step, node, op, at in (("a", "node1", "stop", 1.0), ("b", None, "verify", 2.0), ("c", "node2", "start", 3.0)):
        store.intent(RUN.id, step, "c/lane", node, op, f"target-{step}", f"op-{step}", RUN.started_at + at)
    store.outcome(RUN.id, 1, "applied", "", RUN.started_at + 8.5)
    store.outcome(RUN.id, 2, "failed", "answers \x1b[31m!!!!", RUN.started_at + 2.25)
    store.close()


def test_a_run_that_died_says_what_it_did_and_what_is_open(fleet: Commands) -> None:
    assert [
        "run 8a2f01c4de77: `fleet apply` of fleet lab, plan 1a2b3c4d5e6f, commit 4f2c1ab09d3e",
        "  began  2027-01-15 08:00 UTC by ops@laptop",
        "  unfinished: it is going on, or it died; `fleet resume 8a2f01c4de77` goes on from it",
        "",
        "  applied     stop     target-a on node1 (7.5s)",
        "  failed      verify   target-b: answers \\x1b[31m!!!!",
        "  OPEN        start    target-c on node2",
        "3 steps, 1 open: the next apply settles them by looking",
    ] == fleet("show", RUN.id).out.splitlines()


def test_a_run_that_ended_says_how(fleet: Commands, story: Story) -> None:
    store = story.load().open_state()
    store.outcome(RUN.id, 3, "failed", "", RUN.started_at + 90)
    store.end_run(RUN.id, 7, RUN.started_at + 91)
    store.close()
    lines = fleet("show", RUN.id).out.splitlines()
    assert ("  ended  after 1m31s: needs a person (exit 7)", "3 steps") == (lines[2], lines[-1])


def test_as_json_every_step_has_its_seconds_and_whether_it_is_open(fleet: Commands) -> None:
    shown = fleet("show", RUN.id, "--json").json
    assert (RUN.id, None) == (shown["run"]["id"], shown["run"]["exit_code"])
    assert [("stop", 7.5, False), ("verify", 0.25, False), ("start", None, True)] == [
        (step["op"], step["seconds"], step["open"]) for step in shown["steps"]
    ]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("0123456789ab",), "no run 0123456789ab is recorded"),
        (("8a2f01c4",), "no saved plan and no run is named '8a2f01c4'"),
        ((RUN.id, "--format", "markdown"), "a run is shown as text or as json"),
    ],
)
def test_what_is_not_there_is_told(fleet: Commands, words: tuple[str, ...], told: str) -> None:
    done = fleet("show", *words)
    assert (1, "") == (done.code, done.out)
    assert told in done.err


def test_a_file_that_is_called_like_a_run_is_a_file(
    fleet: Commands, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(RUN.id).write_text("{}")
    assert "8a2f01c4de77 is no saved plan" in fleet("show", RUN.id).err
