"""Each class of drift, caused on simulated nodes, and what the report says of it. What was just applied has none."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reconciler.core.desired import ContainerSpec
from reconciler.core.host import Clock
from reconciler.testing import Behaviour, Exits, Fault
from reconciler.testing.containers import SimContainer
from reconciler.testing.llamacpp import llamacpp_behaviour
from reconciler.testing.models import sim_model
from tests.lifecycle.commanding import Commands
from tests.lifecycle.harness import QUAD, Story
from tests.lifecycle.test_models import MODEL, put

MOMENT = Clock(90.0, 0.1)


@pytest.fixture
def story(tmp_path: Path) -> Story:
    return Story(tmp_path)


@pytest.fixture
def fleet(story: Story, capsys: pytest.CaptureFixture[str]) -> Commands:
    return Commands(story, capsys)


def rank(story: Story, node: str) -> SimContainer:
    """The container of ours that runs on a node."""
    [found] = [item for item in story.nodes.node(node).runtime.containers.values() if item.is_running]
    found._shown = None
    return found


def report(fleet: Commands) -> list[tuple[str, str, str]]:
    rows: list[dict[str, Any]] = fleet("drift", "--json", "--no-record").json["findings"]
    assert all(row["evidence"] and row["remedy"] and row["expected"] and row["found"] for row in rows), rows
    return [(row["class"], row["address"], row["field"]) for row in rows]


def argv(story: Story) -> None:
    found = rank(story, "node2")
    found.spec = replace(found.spec, command=(*found.spec.command, "--mine"))


def variable(story: Story) -> None:
    found = rank(story, "node3")
    found.env = (*found.env, ("MINE", "1"))


def policy(story: Story) -> None:
    rank(story, "node3").restart_policy = "always"


def rename(story: Story) -> None:
    rank(story, "node3").name = "mine"


def content(story: Story) -> None:
    rank(story, "node1").image_id = "sha256:other"


def clock(story: Story) -> None:
    node = story.nodes.node("node3")
    node.host = replace(node.host, clock=MOMENT)


def kill(story: Story) -> None:
    story.nodes.node("node2").kill(rank(story, "node2").id, oom=True)


CAUSES: dict[str, tuple[Callable[[Story], object], tuple[str, str, str]]] = {
    "placement removed": (lambda story: story.place((("pair", "pair-a"),)), ("intent", "single-3/solo", "placement")),
    "another image wanted": (lambda story: story.use(story.next_image), ("intent", "pair-a/pair", "image")),
    "argv": (argv, ("config", "pair-a/pair/1@node2", "argv")),
    "a variable": (variable, ("config", "single-3/solo/0@node3", "env.MINE")),
    "restart policy": (policy, ("config", "single-3/solo/0@node3", "restart")),
    "renamed": (rename, ("config", "single-3/solo/0@node3", "name")),
    "image content": (content, ("identity", "pair-a/pair/0@node1", "image")),
    "killed": (kill, ("runtime", "pair-a/pair/1@node2", "state")),
    "foreign": (lambda story: story.nodes.add_foreign("node1", "jupyter"), ("host", "node1", "container jupyter")),
    "disk": (lambda story: story.nodes.node("node3").fill_disk(2**30), ("host", "node3", "disk-low")),
    "a port": (lambda story: story.nodes.node("node3").listen(30000), ("host", "node3", "stray-port")),
    "clock": (clock, ("host", "node3", "clock")),
    "node": (lambda story: story.nodes.node("node3").power_off(), ("host", "node3", "reach")),
}


@pytest.mark.parametrize("what", CAUSES)
def test_what_was_done_is_found_and_is_gone_when_applied_where_that_mends_it(
    fleet: Commands, story: Story, what: str
) -> None:
    story.apply()
    assert [] == report(fleet)
    cause, expected = CAUSES[what]
    cause(story)
    before = len(story.nodes.mutations)
    assert expected in report(fleet)
    assert before == len(story.nodes.mutations)


@pytest.mark.parametrize("what", ["placement removed", "another image wanted", "argv", "restart policy", "killed"])
def test_apply_mends_what_the_report_says_it_would(fleet: Commands, story: Story, what: str) -> None:
    story.apply()
    CAUSES[what][0](story)
    assert 0 == fleet("apply", "--yes").code
    assert [] == report(fleet)


def remedies(fleet: Commands) -> dict[str, str]:
    rows = fleet("drift", "--json", "--no-record").json["findings"]
    return {f"{row['address']} {row['field']}": row["remedy"] for row in rows}


def test_nothing_is_promised_that_apply_refuses(fleet: Commands, story: Story) -> None:
    story.apply()
    rename(story)
    kill(story)
    told = remedies(fleet)
    assert 3 == fleet("apply", "--yes").code
    assert told["single-3/solo placement"].startswith("nothing: it is refused: "), told
    assert "nothing while single-3/solo is refused; then: boot the gang again" == told["pair-a/pair/1@node2 state"]


@pytest.mark.parametrize(
    ("label", "code"), [("lane", 3), ("revision", 3), ("rank", 3), ("cluster", 0), ("fingerprint", 0)]
)
def test_of_a_label_that_somebody_changed_it_promises_what_apply_does(
    fleet: Commands, story: Story, label: str, code: int
) -> None:
    story.apply()
    found = rank(story, "node3")
    found.labels = {**found.labels, f"fleet.{label}": "7" if label in {"revision", "rank"} else "other"}
    found._whose = None
    told = [remedy for where, remedy in remedies(fleet).items() if where.startswith("single-3/solo ")]
    assert [code == 3] == [remedy.startswith("nothing: it is refused: ") for remedy in told]
    assert code == fleet("apply", "--yes").code


def test_nothing_is_promised_of_what_is_held(fleet: Commands, story: Story) -> None:
    story.apply()
    kill(story)
    fleet("hold", "pair", "--reason", "a demo")
    assert remedies(fleet)["pair-a/pair/1@node2 state"].startswith("nothing: lane pair is held by ")
    assert 3 == fleet("apply", "--yes").code


def test_a_model_that_changed_below_a_lane_that_runs(fleet: Commands, story: Story) -> None:
    whole = replace(sim_model({"config.json": 10, "a.safetensors": 1000}), shards=("a.safetensors",))
    put(story, whole)
    story.apply()
    assert [] == report(fleet)
    put(story, replace(whole, shards=("a.safetensors", "b.safetensors")), "node2")
    assert [("identity", "pair-a/pair@node2", "model-partial")] == report(fleet)
    assert MODEL in fleet("drift", "--no-record").out


def test_a_storage_that_hangs_is_told_and_the_node_is_judged_all_the_same(fleet: Commands, story: Story) -> None:
    story.apply()
    kill(story)
    story.nodes.inject(Fault("hang", "node1", "model-look"))
    found = report(fleet)
    assert ("host", "node1", "storage") in found
    assert ("runtime", "pair-a/pair/1@node2", "state") in found


def test_after_a_rollback_to_other_lanes_neither_they_nor_the_one_that_failed_are_called_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def behaviour(spec: ContainerSpec) -> Behaviour:
        is_quad = any(word.count(",") == 2 and ":" in word for word in spec.command)
        return Exits(2.0, 1, ("no",)) if is_quad else llamacpp_behaviour(spec)

    story = Story(tmp_path, behaviour=behaviour)
    fleet = Commands(story, capsys)
    story.apply()
    story.place(QUAD)
    assert 6 == fleet("apply", "--yes").code
    status = fleet("status").out
    assert "this version failed and was put aside; pair-a/pair, single-3/solo serve in its place" in status
    assert "serves instead of quad/quad: pair-a/pair on node1 node2 (2 running)" in status
    said = fleet("drift", "--json", "--no-record").json["findings"]
    assert ("intent", "degraded", "quad/quad", "version") in {
        (row["class"], row["severity"], row["address"], row["field"]) for row in said
    }
    assert not {"pair-a/pair", "single-3/solo"} & {row["address"] for row in said}


def test_what_is_let_pass_is_counted_and_no_drift(fleet: Commands, story: Story) -> None:
    story.apply()
    story.nodes.add_foreign("node1", "jupyter")
    assert 2 == fleet("drift").code
    path = story.folder / "fleet.yaml"
    rule = 'drift: {ignore: [{class: host, field: "container *", reason: a guest, until: 2999-12-31}]}\n'
    path.write_text(path.read_text() + rule)
    assert 0 == fleet("drift").code
    path.write_text(path.read_text().replace("2999", "2001"))
    assert 2 == fleet("drift").code
