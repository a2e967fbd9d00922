"""Whole commands on the simulated fleet: arguments in, output and exit code out."""

import functools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped] # it has no types of its own
import pytest

from reconciler.cli.main import run
from reconciler.cli.wiring import Wiring
from reconciler.core.observed import UnknownKind
from reconciler.testing import Exits, run_simulated
from tests.lifecycle.harness import QUAD, Story

Command = Callable[..., tuple[int, str, str]]
SCHEMAS = Path(__file__).parents[2] / "docs/schemas"
DRIFT_SCHEMA = jsonschema.Draft202012Validator(json.loads((SCHEMAS / "drift-2.json").read_text(encoding="utf-8")))


@pytest.fixture
def story(tmp_path: Path) -> Story:
    return Story(tmp_path)


@pytest.fixture
def fleet(story: Story, capsys: pytest.CaptureFixture[str]) -> Command:
    """`fleet WORDS --file SPEC` in this process: exit code, standard output, standard error."""
    wiring = Wiring(lambda spec: story.nodes, functools.partial(run_simulated, seed=story.seed))

    def command(*words: str) -> tuple[int, str, str]:
        code = run([*words, "--file", str(story.folder / "fleet.yaml")], wiring)
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return command


def parsed(output: str) -> Any:
    return json.loads(output)


def test_plan_counts_changes_in_its_exit_code_only_when_asked(fleet: Command) -> None:
    assert 0 == fleet("plan")[0]
    assert 2 == fleet("plan", "--detailed-exitcode")[0]


def test_plan_json_is_the_same_twice_and_the_same_as_the_file(fleet: Command, tmp_path: Path) -> None:
    first = fleet("plan", "--json", "--out", str(tmp_path / "plan.json"))[1]
    assert first == fleet("plan", "--json")[1]
    plan = parsed(first)
    assert {"steps", "boots", "dark", "moved_bytes", "disk_after"} == set(plan.pop("estimates"))
    assert plan == json.loads((tmp_path / "plan.json").read_text())["plan"]


def test_apply_without_a_terminal_and_without_yes_does_nothing(
    fleet: Command, story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: False, raising=False)
    code, output, error = fleet("apply")
    assert (1, ()) == (code, story.nodes.mutations)
    assert "--yes" in error
    assert output.endswith("Nothing was changed.\n")
    assert "nothing was changed" in fleet("apply", "--json")[2]


def test_a_no_at_the_prompt_changes_nothing_and_says_so(
    fleet: Command, story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def no() -> str:
        return "n\n"

    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("reconciler.cli.carrying._line_typed", no)
    code, output, _ = fleet("apply")
    assert (1, ()) == (code, story.nodes.mutations)
    assert output.endswith("Apply this plan? [y/N] Nothing was changed.\n")


def test_apply_json_has_the_plan_and_the_result(fleet: Command) -> None:
    code, output, _ = fleet("apply", "--yes", "--json")
    report = parsed(output)
    assert (0, 0) == (code, report["exit"])
    assert {"applied"} == set(report["result"]["steps"].values())
    assert "fleet.plan/1" == report["plan"]["schema"]


def test_status_shows_three_axes_and_where_a_lane_answers(fleet: Command) -> None:
    fleet("apply", "--yes")
    code, output, _ = fleet("status", "--json")
    lanes = parsed(output)["lanes"]
    assert 0 == code
    assert [("in-sync", "healthy", "reachable")] * 2 == [
        (lane["sync"], lane["health"], lane["reach"]) for lane in lanes
    ]
    assert "http://10.0.0.1:30000/v1" == lanes[0]["url"]


def test_logs_are_told_apart_by_rank_and_node(fleet: Command) -> None:
    fleet("apply", "--yes")
    code, output, _ = fleet("logs", "pair", "--tail", "1")
    assert (0, ["0@node1", "1@node2"]) == (code, sorted(line.split(" | ")[0] for line in output.splitlines()))
    assert 1 == len(fleet("logs", "pair", "--rank", "1", "--tail", "1")[1].splitlines())


def test_logs_as_json_have_one_object_a_line(fleet: Command) -> None:
    fleet("apply", "--yes")
    rows = [json.loads(line) for line in fleet("logs", "solo", "--json", "--tail", "2")[1].splitlines()]
    assert [(0, "node3", "fleet-solo-r0-v1")] * 2 == [(row["rank"], row["node"], row["container"]) for row in rows]


def test_logs_of_a_lane_that_is_not_there_is_an_error(fleet: Command) -> None:
    code, _, error = fleet("logs", "pair")
    assert 1 == code
    assert "no container of lane pair" in error


def test_down_takes_one_lane_and_leaves_the_other(fleet: Command, story: Story) -> None:
    fleet("apply", "--yes")
    assert 0 == fleet("down", "pair", "--yes")[0]
    assert {"solo": 1} == story.running_lanes()
    assert 2 == fleet("plan", "--detailed-exitcode")[0]


def test_down_all_leaves_nothing(fleet: Command, story: Story) -> None:
    fleet("apply", "--yes")
    assert 0 == fleet("down", "--all", "--yes")[0]
    assert {} == story.containers()


def test_down_needs_to_know_what(fleet: Command) -> None:
    assert 1 == fleet("down", "--yes")[0]
    assert 1 == fleet("down", "nobody", "--yes")[0]


def test_drift_is_silent_then_finds_a_killed_rank_and_changes_nothing(fleet: Command, story: Story) -> None:
    fleet("apply", "--yes")
    assert 0 == fleet("drift")[0]
    story.nodes.node("node2").kill("fleet-pair-r1-v1")
    before = len(story.nodes.mutations)
    code, output, _ = fleet("drift", "--format", "json")
    assert (2, before) == (code, len(story.nodes.mutations))
    found = parsed(output)
    assert ["runtime"] == [item["class"] for item in found["findings"]]
    assert [] == [error.message for error in DRIFT_SCHEMA.iter_errors(found)]
    code, page, _ = fleet("drift", "--format", "html")
    assert (2, before) == (code, len(story.nodes.mutations))
    assert page.startswith("<!doctype html>")
    assert f'<li id="{found["findings"][0]["id"]}"' in page


def test_drift_that_could_not_look_says_so_by_its_exit_code(fleet: Command, story: Story) -> None:
    fleet("apply", "--yes")
    story.nodes.node("node3").power_off()
    assert 4 == fleet("drift")[0]


def test_markdown_names_the_outage(fleet: Command, story: Story) -> None:
    fleet("apply", "--yes")
    story.place(QUAD)
    output = fleet("plan", "--format", "markdown")[1]
    assert "dark" in output.partition("<details>")[0]
    assert "`pair-a/pair`" in output.partition("<details>")[0]


def test_no_command_prints_a_secret(fleet: Command, story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POISON", "poison-value-1234")
    story.edit("stop_grace: 5s", 'stop_grace: 5s\n    env: {HF_TOKEN: {secret: "env:POISON"}}')
    outputs = [
        fleet("plan", "--json"),
        fleet("apply", "--yes"),
        fleet("status", "--json"),
        fleet("drift", "--format", "json"),
        fleet("plan"),
    ]
    text = "".join(output + error for _, output, error in outputs)
    state = b"".join(path.read_bytes() for path in (story.folder / ".fleet").iterdir())
    assert 0 == outputs[1][0]
    assert "env:POISON" in text
    assert "poison-value" not in text
    assert b"poison-value" not in state


def test_logs_of_a_lane_whose_node_cannot_be_read_say_which_and_why(fleet: Command, story: Story) -> None:
    fleet("apply", "--yes")
    story.nodes.node("node3").deny(UnknownKind.AUTH, "node3 did not let root in by key", "try\nssh-copy-id")
    code, output, error = fleet("logs", "solo")
    assert (4, "") == (code, output)
    assert [
        "fleet: node3 cannot be read: node3 did not let root in by key",
        "fleet:     try",
        "fleet:     ssh-copy-id",
        "fleet: no container of lane solo on the nodes that answer",
    ] == error.splitlines()[:4]


def test_logs_of_the_ranks_that_can_be_read_are_printed_all_the_same(fleet: Command, story: Story) -> None:
    fleet("apply", "--yes")
    story.nodes.node("node2").power_off()
    code, output, error = fleet("logs", "pair", "--tail", "1")
    assert (4, ["0@node1"]) == (code, [line.split(" | ")[0] for line in output.splitlines()])
    assert "node2 cannot be read: " in error
    assert (0, "") == fleet("logs", "pair", "--rank", "0", "--tail", "1")[::2]
    assert 0 == fleet("logs", "solo", "--tail", "1")[0]


def test_logs_of_a_lane_that_is_placed_nowhere_may_be_on_any_node_that_cannot_be_read(
    fleet: Command, story: Story
) -> None:
    story.nodes.node("node4").power_off()
    assert 4 == fleet("logs", "quad")[0]


def test_logs_of_a_rank_that_never_started_say_so(fleet: Command, story: Story) -> None:
    fleet("apply", "--yes")
    found = story.nodes.node("node3").runtime.require("fleet-solo-r0-v1")
    found.state, found.error = "created", "exec: not found"
    found.logs.clear()
    code, output, error = fleet("logs", "solo")
    assert (0, "") == (code, output)
    assert "rank 0 on node3: no log lines (fleet-solo-r0-v1 was never started: exec: not found)" in error


@pytest.mark.parametrize(
    ("lane", "ranks"), [("solo", "lane solo has only rank 0"), ("pair", "lane pair has ranks 0 to 1")]
)
def test_logs_of_a_rank_that_is_not_there_say_which_ones_are(fleet: Command, lane: str, ranks: str) -> None:
    for commands in ((), ("apply", "--yes")):
        if commands:
            fleet(*commands)
        code, _, error = fleet("logs", lane, "--rank", "5")
        assert 1 == code
        assert f"no container of lane {lane} rank 5" in error
        assert ranks in error


def test_validate_counts_in_words(fleet: Command, story: Story) -> None:
    spec = story.folder / "fleet.yaml"
    assert f"{spec}: valid: 4 nodes, 3 clusters, 3 lanes, 2 placed\n" == fleet("validate")[1]
    spec.write_text("fleet: lab\nnodes: {n: {ssh: {host: n.lan}, platform: linux/arm64}}\n")
    assert f"{spec}: valid: 1 node, 0 clusters, 0 lanes, 0 placed\n" == fleet("validate")[1]


def test_without_a_spec_here_the_ways_to_name_one_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    told = "there is no fleet.yaml here: name the spec with --file or the variable FLEET_FILE"
    assert 1 == run(["plan"], Wiring())
    assert f"fleet: {told}\n" == capsys.readouterr().err
    assert 1 == run(["validate", "--json"], Wiring())
    assert [told] == [item["summary"] for item in json.loads(capsys.readouterr().out)["diagnostics"]]
    assert 1 == run(["plan", "--file", "other.yaml"], Wiring())
    assert capsys.readouterr().err == "fleet: other.yaml: the file cannot be read: no such file or directory\n"


def test_a_secret_that_a_dying_engine_prints_is_not_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POISON", "poison-value-1234")
    dies = Exits(after_s=2.0, code=3, lines=("HF_TOKEN=poison-value-1234",))
    story = Story(tmp_path, (("solo", "single-3"),), behaviour=dies)
    story.edit("stop_grace: 5s", 'stop_grace: 5s\n    env: {HF_TOKEN: {secret: "env:POISON"}}')
    wiring = Wiring(lambda spec: story.nodes, functools.partial(run_simulated, seed=story.seed))
    assert 6 == run(["apply", "--yes", "--file", str(story.folder / "fleet.yaml")], wiring)
    printed = capsys.readouterr().out
    assert "HF_TOKEN=[redacted]" in printed
    assert "poison-value" not in printed
