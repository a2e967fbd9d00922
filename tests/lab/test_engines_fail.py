"""Engines that fail as they do in the field, each in the place of a lane that serves.

Whatever happens, the output says why, the lane that was stopped for it serves again, and nothing is left running. The
engine is a script (`faulty_engine.sh`) in the lab's small image.
"""

import json
import re
import shutil
import time
from pathlib import Path

import pytest

from . import Lab, serving, specfile
from .fleet_cli import Desk, Ran, containers, desk, names
from .shell import wait_until

pytestmark = pytest.mark.lab

SOLO, NEXT, PAIR = ("solo", "single-3"), ("next", "single-3"), ("pair", "pair-a")
ENGINE = Path(__file__).with_name("faulty_engine.sh")
LOGS = Path(__file__).parents[1] / "fixtures/causes"
HEALTH = {
    "boot": "20s",
    "interval": "200ms",
    "probes": [{"chat": specfile.QUESTION, "expect": "Paris", "timeout": "2s"}],
}
MOUNTS = [{"source": "{paths.models}", "target": "/srv/models"}]
BACK = "single-3/next: its boot failed and was rolled back; what ran before serves again: single-3/solo"


@pytest.fixture
def serving_solo(clean_lab: Lab, tmp_path: Path) -> Desk:
    """A lane that serves on node3, and the script of the faulty engine beside its model."""
    made = desk(clean_lab, tmp_path, SOLO)
    made.apply()
    clean_lab.preload("tiny", ["node3"])
    shutil.copy(ENGINE, clean_lab.nodes["node3"].disk / "srv/models")
    return made


def replace_by(made: Desk, mode: str, log: str = "", **health: object) -> None:
    """Want the faulty engine in the place of the lane that serves."""
    argv = ["sh", f"/srv/models/{ENGINE.name}", mode, "{port}", log]
    made.custom("next", "", argv=argv, mounts=MOUNTS, health={**HEALTH, **health}, served_name="faulty")
    made.place(NEXT)


def assert_came_back(made: Desk, ran: Ran, *phrases: str) -> None:
    """Exit 6, all phrases said, the lane before serves the right answer again, and only it runs."""
    assert ran.rc == 6, ran.said
    for phrase in (*phrases, BACK):
        assert phrase in ran.said, f"{phrase!r} is not in:\n{ran.said}"
    assert {"node3": ["fleet-solo-r0-v1"]} == names(made.lab)
    assert "Paris" in serving.ask(f"http://{made.lab.nodes['node3'].address}:30000")


@pytest.mark.parametrize(
    ("log", "title"),
    [
        ("exclusive-flags", "two of its flags exclude each other. Leave one of the two out"),
        ("kv-layout", "the KV cache layout cannot hold this model"),
        ("import-error", "the image's Python packages do not fit together"),
        ("rendezvous-timeout", "the ranks did not find each other in time"),
    ],
)
def test_an_engine_that_exits_at_once_says_why(serving_solo: Desk, log: str, title: str) -> None:
    shutil.copy(LOGS / f"{log}.log", serving_solo.lab.nodes["node3"].disk / "srv/models")
    replace_by(serving_solo, "says", f"/srv/models/{log}.log")
    ran = serving_solo.fleet("apply", "--yes")
    assert_came_back(serving_solo, ran, "rank 0 on node3 exited 1", title, "log lines:")
    failed = json.loads(serving_solo.fleet("apply", "--yes", "--retry", "--json").out)
    assert [log] == [item["cause"] for item in failed["result"]["failures"] if item["cause"]]


def test_an_engine_that_fails_again_and_again_is_tried_once_each_time_it_is_asked_for(serving_solo: Desk) -> None:
    """Docker does not start it again by itself, and automation does not ask twice."""
    replace_by(serving_solo, "line")
    assert serving_solo.fleet("apply", "--yes").rc == 6
    assert serving_solo.fleet("apply", "--yes").rc == 3
    assert_came_back(serving_solo, serving_solo.fleet("apply", "--yes", "--retry"), "exited 1")
    node = serving_solo.lab.nodes["node3"]
    shape = "{{.State.Status}} {{.RestartCount}} {{.HostConfig.RestartPolicy.Name}}"
    ended = [line.split()[0] for line in containers(serving_solo.lab)["node3"] if "next" in line]
    assert ended
    assert {"exited 0 no"} == {node.docker("inspect", "-f", shape, found).strip() for found in ended}


def test_a_slow_boot_is_followed_to_its_end(serving_solo: Desk) -> None:
    replace_by(serving_solo, "phases")
    ran = serving_solo.fleet("apply", "--yes")
    assert ran.rc == 0, ran.said
    assert {"node3": ["fleet-next-r0-v1"]} == names(serving_solo.lab)


def test_an_engine_that_hangs_on_generation_is_not_healthy(serving_solo: Desk) -> None:
    """Its health page says 200 all the time."""
    replace_by(serving_solo, "hang")
    ran = serving_solo.fleet("apply", "--yes")
    assert_came_back(serving_solo, ran, specfile.QUESTION)


def test_an_engine_that_dies_once_it_was_ready_is_seen_at_once(serving_solo: Desk) -> None:
    replace_by(serving_solo, "dies")
    assert serving_solo.fleet("apply", "--yes").rc in {0, 6}
    wait_until(
        "the engine to end", lambda: "fleet-next-r0-v1" not in names(serving_solo.lab).get("node3", []), seconds=20
    )
    shown = serving_solo.fleet("status")
    assert "degraded" in shown.out
    assert "rank 0 on node3 exited 1" in shown.out
    assert "a GPU kernel crashed" in shown.out
    assert serving_solo.fleet("drift").rc == 2


def test_an_engine_that_eats_memory_is_told_from_one_that_crashes(serving_solo: Desk) -> None:
    """A limit of its own keeps the machine safe; it is set by hand, between its start and its hunger."""
    replace_by(serving_solo, "eats")
    node = serving_solo.lab.nodes["node3"]
    with serving_solo.started("apply", "--yes") as process:
        name = "fleet-next-r0-v1.unproved"
        wait_until("the engine to run", lambda: name in names(serving_solo.lab).get("node3", ()), seconds=60)
        node.docker("update", "--memory", "48m", "--memory-swap", "48m", name)
        out, err = process.communicate(timeout=90)
    assert_came_back(serving_solo, Ran(process.returncode, out, err), "exited 137 (out of memory)", "memory ran out")


@pytest.mark.parametrize("mode", ["drown", "line", "binary"])
def test_a_log_that_floods_is_cut_and_still_read(serving_solo: Desk, mode: str) -> None:
    """Ten thousand lines a second, one line of five megabytes, bytes that act on a terminal: then the error."""
    replace_by(serving_solo, mode)
    ran = serving_solo.fleet("apply", "--yes")
    assert_came_back(serving_solo, ran, "no memory is left for the KV cache", "Raise gpu-memory-utilization")
    assert len(ran.said) < 30_000
    assert re.search(r"[\x00-\x08\x0e-\x1f]", ran.said) is None
    assert "owned" not in ran.said


def test_a_lane_that_floods_its_log_is_served_and_watched_like_any_other(serving_solo: Desk) -> None:
    replace_by(serving_solo, "flood")
    assert serving_solo.fleet("apply", "--yes").rc == 0
    status = json.loads(serving_solo.fleet("status", "--json").out)
    assert ["healthy"] == [lane["health"] for lane in status["lanes"] if lane["lane"] == "next"]
    assert len(serving_solo.fleet("logs", "next", "--tail", "5").out.splitlines()) == 5
    serving_solo.place(SOLO)
    serving_solo.apply()


def test_a_worker_killed_under_a_ready_lane_is_seen_and_repaired(clean_lab: Lab, tmp_path: Path) -> None:
    """The head goes on saying 200, and dies of the next question: the rank that ended first is blamed, not the head."""
    made = desk(clean_lab, tmp_path, PAIR)
    made.apply()
    clean_lab.nodes["node2"].docker("kill", "fleet-pair-r1-v1")
    since = time.monotonic()
    shown = made.fleet("status").out
    assert "degraded" in shown
    assert "rank 1 on node2 exited 137 (killed)" in shown
    assert "something killed it" in shown
    assert time.monotonic() - since < 10
    made.apply()
    assert "Paris" in serving.ask(f"http://{clean_lab.nodes['node1'].address}:30000")
