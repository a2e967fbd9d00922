"""A fleet's life in the order an operator lives it, with the real command on real nodes.

The first part is one story: each test goes on where the one before ended. The second part interrupts and kills the
controller.
"""

import json
import re
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from . import Lab, serving, specfile
from .fleet_cli import Desk, containers, desk, interrupted, names, read_until

pytestmark = pytest.mark.lab

PAIR, SOLO, QUAD = ("pair", "pair-a"), ("solo", "single-3"), ("quad", "quad")
TWO_LANES = {"node1": ["fleet-pair-r0-v1"], "node2": ["fleet-pair-r1-v1"], "node3": ["fleet-solo-r0-v1"]}


@pytest.fixture(scope="module")
def story(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """The desk the story is told at."""
    lab.reset()
    yield desk(lab, tmp_path_factory.mktemp("story"), PAIR, SOLO)
    lab.reset()


def answers(story: Desk, lane: str) -> str:
    """What a user of the lane gets, at the URL that `fleet status` shows."""
    url = next(item["url"] for item in status(story)["lanes"] if item["lane"] == lane)
    return serving.ask(url.removesuffix("/v1"))


def status(story: Desk) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(story.fleet("status", "--json").out)
    return found


def health(story: Desk) -> dict[str, str]:
    return {item["lane"]: item["health"] for item in status(story)["lanes"]}


# the story


def test_two_missing_lanes_are_planned_booted_and_answer(story: Desk) -> None:
    plan = story.fleet("plan", "--detailed-exitcode")
    assert plan.rc == 2
    assert plan.out.count("wanted, not running") == 2
    assert "Plan: 2 boot." in plan.out
    assert health(story) == {"pair": "missing", "solo": "missing"}
    applied = story.apply()
    assert applied.out.endswith("2 booted\n")
    assert TWO_LANES == names(story.lab)
    for lane in ("pair", "solo"):
        assert "Paris" in answers(story, lane)


def test_planning_again_finds_nothing_and_does_nothing(story: Desk) -> None:
    before, since = containers(story.lab), time.time()
    plan = story.fleet("plan", "--detailed-exitcode")
    assert plan.rc == 0
    assert "No changes." in plan.out
    applied = story.fleet("apply", "--yes")
    assert applied.rc == 0
    assert before == containers(story.lab)
    assert events(story.lab, since) == []


def test_every_form_of_the_plan_is_the_same_bytes(story: Desk) -> None:
    """Also with the recorded state deleted: the nodes carry the truth. Only free disk wanders between two looks."""
    story.place(QUAD)
    first = story.fleet("plan", "--json", "--out", "plan.json")
    plan, estimates = apart(first.out)
    assert plan["steps"]
    assert plan == json.loads((story.folder / "plan.json").read_text())["plan"]
    assert {"quad/quad"} == set(estimates["boots"])
    assert but_disk(plan) == but_disk(apart(story.fleet("plan", "--format", "json").out)[0])
    shutil.move(story.folder / ".fleet", story.folder / "kept")
    without = story.fleet("plan", "--json")
    shutil.move(story.folder / "kept", story.folder / ".fleet")
    assert first.rc == without.rc
    assert but_disk(plan) == but_disk(apart(without.out)[0])
    assert {} == apart(without.out)[1]["boots"]


def apart(output: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The plan as JSON, and what is expected of it, which the record tells."""
    plan: dict[str, Any] = json.loads(output)
    return plan, plan.pop("estimates")


def but_disk(plan: dict[str, Any]) -> str:
    """The text of a plan without what is free on the disks."""
    return re.sub(r'"disk_free(_after)?_bytes": \d+', "", json.dumps(plan))


def test_a_lane_over_all_nodes_takes_the_place_of_both(story: Desk) -> None:
    plan = story.fleet("plan")
    assert plan.rc == 0
    dark = r"node1 node2 node3 node4 go dark for about [\d.]+s \(boot [\d.]+s; the last two took "
    assert re.search(dark, plan.out), plan.out
    for lane in ("pair-a/pair", "single-3/solo"):
        assert f"- stop    {lane:<13}  makes room for quad/quad" in plan.out
    assert plan.out.index("go dark") < plan.out.index("- stop") < plan.out.index("+ boot")
    story.apply()
    assert {f"node{n + 1}": [f"fleet-quad-r{n}-v1"] for n in range(4)} == names(story.lab)
    assert all(len(found) == 1 for found in containers(story.lab).values())
    assert "Paris" in answers(story, "quad")


def test_logs_show_what_the_ranks_say(story: Desk) -> None:
    every = story.fleet("logs", "quad", "--tail", "3")
    assert {line.partition(" | ")[0] for line in every.out.splitlines()} >= {"0@node1"}
    head = story.fleet("logs", "quad", "--rank", "0", "--tail", "2")
    assert (head.rc, len(head.out.splitlines())) == (0, 2)
    assert not head.out.startswith("0@node1")
    missing = story.fleet("logs", "quad", "--rank", "7")
    assert (missing.rc, missing.out) == (1, "")
    assert "no container of lane quad rank 7" in missing.err


def test_logs_that_are_followed_end_with_the_interrupt(story: Desk) -> None:
    with story.started("logs", "quad", "--rank", "0", "--follow", "--tail", "0") as following:
        time.sleep(2)
        url = f"http://{story.lab.nodes['node1'].address}:30000"
        serving.ask(url)
        read = read_until(following, "stop processing", seconds=10)
        ran, seconds = interrupted(following, read)
    assert ran.rc == 130
    assert "steps" not in ran.said  # there are none here
    assert seconds < 2


def test_a_rank_killed_by_hand_is_seen_at_once_and_repaired(story: Desk) -> None:
    """The head goes on answering 200 on its health path: the ranks count."""
    story.lab.nodes["node3"].docker("kill", "fleet-quad-r2-v1")
    assert serving.status(f"http://{story.lab.nodes['node1'].address}:30000/health") == 200
    assert health(story) == {"quad": "degraded"}
    shown = story.fleet("status").out
    assert "rank 2 on node3 exited 137 (killed)" in shown
    assert story.fleet("drift").rc == 2
    plan = story.fleet("plan")
    assert "~ repair  quad/quad  rank 2 on node3 exited 137 (killed)" in plan.out
    assert "go dark for about" in plan.out  # the boot before is recorded
    story.apply()
    assert health(story) == {"quad": "healthy"}
    assert story.fleet("drift").rc == 0
    assert "Paris" in answers(story, "quad")


def test_back_to_two_lanes(story: Desk) -> None:
    story.place(PAIR, SOLO)
    story.apply()
    assert TWO_LANES == names(story.lab)
    assert "Paris" in answers(story, "pair")


def test_a_lane_taken_down_is_missing_to_the_plan(story: Desk) -> None:
    assert story.fleet("down", "solo").rc == 1  # nobody to ask
    assert TWO_LANES == names(story.lab)
    assert story.fleet("down", "solo", "--yes").rc == 0
    assert names(story.lab).keys() == {"node1", "node2"}
    assert containers(story.lab)["node3"] == []
    plan = story.fleet("plan", "--detailed-exitcode")
    assert plan.rc == 2
    assert "+ boot    single-3/solo  wanted, not running" in plan.out
    assert "unchanged: pair-a/pair" in plan.out
    again = story.fleet("down", "solo", "--yes")
    assert again.rc == 0


def test_down_with_all_leaves_nothing(story: Desk) -> None:
    assert story.fleet("down", "--all", "--yes").rc == 0
    assert {name: [] for name in story.lab.nodes} == containers(story.lab)


# a controller that is interrupted or dies


def test_an_interrupted_proof_is_taken_up_again(clean_lab: Lab, tmp_path: Path) -> None:
    """An engine that never gets healthy; then what it waits for comes."""
    clean_lab.preload("llamacpp", ["node3"])
    made = desk(clean_lab, tmp_path, ("slow", "single-3"))
    serve = "exec llama-server --model /srv/models/good.gguf --alias slow --host 0.0.0.0 --port {port}"
    script = f"echo waiting; until [ -e /srv/models/go ]; do sleep 0.1; done; {serve}"
    health = {"boot": "5m", "interval": "200ms", "probes": [{"chat": specfile.QUESTION, "expect": "Paris"}]}
    mounts = [{"source": "{paths.models}", "target": "/srv/models"}]
    made.custom("slow", script, image=clean_lab.images["llamacpp"], mounts=mounts, health=health, served_name="slow")
    with made.started("apply", "--yes") as applying:
        read = read_until(applying, "... proving")
        time.sleep(1)
        ran, seconds = interrupted(applying, read)
    assert ran.rc == 130
    assert seconds < 5
    assert "interrupted; was proving single-3/slow" in ran.out
    assert "`fleet resume` goes on from here" in ran.out
    assert "? prove   single-3/slow" in made.fleet("plan").out
    before = containers(clean_lab)
    go = clean_lab.nodes["node3"].disk / "srv/models/go"
    go.touch()
    try:
        made.apply()
    finally:
        go.unlink()
    assert [line.split()[0] for line in before["node3"]] == [line.split()[0] for line in containers(clean_lab)["node3"]]
    assert_settled(made, {"node3": ["fleet-slow-r0-v1"]})


@pytest.mark.parametrize("moment", ["... pulling", "ok  creating", "... proving"])
def test_a_controller_that_dies_in_the_middle_of_a_boot(clean_lab: Lab, tmp_path: Path, moment: str) -> None:
    for name in ("node1", "node2") if "pulling" in moment else ():
        clean_lab.nodes[name].remove_images()
    made = desk(clean_lab, tmp_path, PAIR)
    killed_at(made, moment)
    assert made.fleet("plan").rc == 0
    made.apply()
    assert_settled(made, {"node1": ["fleet-pair-r0-v1"], "node2": ["fleet-pair-r1-v1"]})


@pytest.mark.parametrize("moment", ["... stopping", "ok  starting", "ok  confirming"])
def test_a_controller_that_dies_while_one_lane_takes_the_place_of_another(
    clean_lab: Lab, tmp_path: Path, moment: str
) -> None:
    made = desk(clean_lab, tmp_path, SOLO)
    made.apply()
    made.edit_lane("solo", args={"ctx-size": 256})
    killed_at(made, moment)
    assert made.fleet("plan").rc == 0
    made.apply()
    assert_settled(made, {"node3": ["fleet-solo-r0-v2"]}, {"node3": ["fleet-solo-r0-v1"]})


def killed_at(made: Desk, moment: str) -> None:
    """Apply, and kill the controller as soon as it has said so far."""
    with made.started("apply", "--yes") as applying:
        read_until(applying, moment)
        applying.send_signal(signal.SIGKILL)
        applying.wait(10)


def assert_settled(made: Desk, wanted: dict[str, list[str]], kept: dict[str, list[str]] | None = None) -> None:
    """One set of containers, all running and proved; nothing left to do; every lane answers. `kept`: to go back to."""
    assert wanted == names(made.lab)
    there = {name: sorted(wanted.get(name, []) + (kept or {}).get(name, [])) for name in {*wanted, *(kept or {})}}
    assert there == {
        name: sorted(line.split()[1] for line in found) for name, found in containers(made.lab).items() if found
    }
    for lane in status(made)["lanes"]:
        assert (lane["sync"], lane["health"]) == ("in-sync", "healthy")
        assert "Paris" in serving.ask(lane["url"].removesuffix("/v1"))


def events(lab: Lab, since: float) -> list[str]:
    """What Docker did on any node since then."""
    form = ["--format", "{{.Type}} {{.Action}} {{.Actor.ID}}"]
    window = ["--since", f"{since:.3f}", "--until", f"{time.time():.3f}"]
    return [line for node in lab.nodes.values() for line in node.docker("events", *window, *form).splitlines()]
