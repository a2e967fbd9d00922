"""Boots that fail, on simulated nodes: who is blamed, for what, and where a person reads of it."""

from dataclasses import replace
from pathlib import Path

import pytest

from reconciler.core.gate import Health, Verdict
from reconciler.core.host import Clock
from reconciler.core.outcome import Exit
from reconciler.execution.gate import GangWatch
from reconciler.execution.outcomes import Outcome
from reconciler.execution.postmortem import explained
from reconciler.fleet import Fleet
from reconciler.testing import Behaviour, DiesAfterReady, Exits, Fault, OutOfMemory
from tests.lifecycle.harness import Story
from tests.lifecycle.test_health import pass_time

SOLO = (("solo", "single-3"),)

BOOTS: dict[str, tuple[Behaviour, str, tuple[str, ...]]] = {
    "an error of the catalogue": (
        Exits(2.0, 1, ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.32 GiB.", "bye")),
        "gpu-out-of-memory",
        ("rank 0 on node3 exited 1", "the GPU ran out of memory", "Lower gpu-memory-utilization"),
    ),
    "an error in words of its own": (
        Exits(2.0, 1, ("RuntimeError: the flux capacitor is not charged", "leaked semaphore")),
        "",
        ("rank 0 on node3 exited 1", "the flux capacitor is not charged"),
    ),
    "out of memory": (OutOfMemory(), "oom-killed", ("exited 137 (out of memory)", "the kernel ended it")),
    "dies once it was ready": (
        DiesAfterReady(served_name="bigram", port=30000, boot_s=5.0, after_s=0.5, code=139),
        "cuda-fault",
        ("exited 139", "a GPU kernel crashed"),
    ),
}


@pytest.mark.parametrize("name", BOOTS)
def test_a_failed_boot_says_why_in_the_apply_in_its_record_and_in_the_status(tmp_path: Path, name: str) -> None:
    behaviour, cause, phrases = BOOTS[name]
    story = Story(tmp_path, SOLO, behaviour=behaviour)
    applied = story.apply()
    assert Exit.UNCHANGED == applied.exit
    failure = applied.failures[0]
    assert cause == failure.cause
    for phrase in phrases:
        assert phrase in failure.detail
        assert phrase in story.status().lanes[0].last_failure


def test_the_last_lines_are_few_and_fit_to_be_shown(tmp_path: Path) -> None:
    lines = (*(f"line {number}" for number in range(5000)), "\x1b[31mbroken\x1b[0m", "x" * 5_000_000)
    applied = Story(tmp_path, SOLO, behaviour=Exits(2.0, 1, lines)).apply()
    logs = applied.failures[0].logs
    assert (20, "broken") == (len(logs), logs[-2])
    assert sum(map(len, logs)) < 20_000


def test_a_log_that_cannot_be_read_leaves_the_failure_told(tmp_path: Path) -> None:
    story = Story(tmp_path, SOLO, behaviour=Exits(2.0, 3, ("CUDA out of memory",)))
    story.nodes.inject(Fault.fail("node3", "logs", nth=None))
    failure = story.apply().failures[0]
    assert "rank 0 on node3 exited 3" in failure.detail
    assert () == failure.logs


def test_the_status_of_a_rank_that_died_under_a_ready_lane_says_why(tmp_path: Path) -> None:
    story = Story(tmp_path)
    assert Exit.OK == story.apply().exit
    node = story.nodes.node("node2")
    node.runtime.require("fleet-pair-r1-v1").logs.append("RuntimeError: CUDA error: an illegal memory access")
    node.kill("fleet-pair-r1-v1", 1)
    pair = next(lane for lane in story.status().lanes if lane.lane == "pair")
    assert "degraded" == pair.health
    assert "rank 1 on node2 exited 1" in pair.detail
    assert "a GPU kernel crashed. Try it with enforce-eager" in pair.detail
    assert pair.ranks[1].detail.endswith(": a GPU kernel crashed")
    assert "running" == pair.ranks[0].detail


def test_a_status_does_not_wait_for_a_log_that_hangs(tmp_path: Path) -> None:
    story = Story(tmp_path)
    story.apply()
    story.nodes.node("node2").kill("fleet-pair-r1-v1", 1)
    story.nodes.inject(Fault.hang("node2", "logs", nth=None))
    before_s = story.nodes.now_s
    pair = next(lane for lane in story.status().lanes if lane.lane == "pair")
    assert "rank 1 on node2 exited 1" in pair.detail
    assert story.nodes.now_s - before_s < 5.0


def test_an_image_that_cannot_be_started_says_why(tmp_path: Path) -> None:
    story = Story(tmp_path, SOLO)
    refused = Fault.fail("node3", "start")
    said = 'Docker refused: exec: "toolchain.py": executable file not found in $PATH'
    story.nodes.inject(replace(refused, message=said))
    failure = story.apply().failures[0]
    assert "no-program" == failure.cause
    assert failure.detail.startswith(said)
    assert "Compare the lane's `entrypoint`" in failure.detail


@pytest.mark.parametrize(("ahead_s", "blamed"), [(0.0, "rank 0 on node1"), (30.0, "rank 1 on node2")])
def test_the_rank_that_ended_first_is_blamed_though_its_clock_is_ahead(
    tmp_path: Path, ahead_s: float, blamed: str
) -> None:
    story = Story(tmp_path)
    assert Exit.OK == story.apply().exit
    for number, rank in ((1, 0), (2, 1)):
        node = story.nodes.node(f"node{number}")
        node.host = replace(node.host, clock=Clock(ahead_s * rank, 0.1))
        node.runtime.require(f"fleet-pair-r{rank}-v1").logs.append("RuntimeError: CUDA error: an illegal memory access")
        node.kill(f"fleet-pair-r{rank}-v1", 1)
        pass_time(story, 3.0)
    pair = next(lane for lane in story.status().lanes if lane.lane == "pair")
    assert f"{blamed} exited 1" in pair.detail.partition(": a GPU kernel crashed")[0].rpartition(";")[2]

    async def why(fleet: Fleet) -> Outcome:
        watch = GangWatch(fleet.nodes, fleet.desired.gangs[0], {0: "fleet-pair-r0-v1", 1: "fleet-pair-r1-v1"})
        return await explained(watch, Verdict(Health.DEGRADED, "ranks"))

    assert story.run(why).detail.startswith(f"{blamed} exited 1")


def test_of_tries_that_failed_two_are_kept_at_most_and_none_once_one_succeeds(tmp_path: Path) -> None:
    """The newest, whose logs may be of use, and the one that follows; what is proved runs again each time."""
    story = Story(tmp_path, SOLO)
    assert Exit.OK == story.apply().exit
    for size in range(513, 518):
        story.edit(f"ctx-size: {size - 1}", f"ctx-size: {size}")
        story.nodes.inject(Fault.fail("node3", "start"))
        assert Exit.UNCHANGED == story.apply().exit
        tries = {name: state for name, state in story.containers().items() if name.endswith(".unproved")}
        assert len(tries) <= 2
        assert {"running"} == set(story.containers().values()) - set(tries.values())
        assert {"solo": 1} == story.running_lanes()
    story.edit("ctx-size: 517", "ctx-size: 518")
    assert Exit.OK == story.apply().exit
    assert [] == [name for name in story.containers() if name.endswith(".unproved")]


def test_a_try_goes_only_when_the_next_one_is_staged(tmp_path: Path) -> None:
    story = Story(tmp_path, SOLO)
    for size in (513, 514):
        story.edit(f"ctx-size: {size - 1}", f"ctx-size: {size}")
        story.nodes.inject(Fault.fail("node3", "start"))
        story.apply()
    story.edit("ctx-size: 514", "ctx-size: 515")
    story.nodes.inject(Fault.fail("node3", "create"))
    assert Exit.UNCHANGED == story.apply().exit
    assert 2 == len(story.containers())
