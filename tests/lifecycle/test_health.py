"""Engines that look well and are not, or look hung and are well: how an apply ends, and who serves then."""

import asyncio
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest

from reconciler.core.desired import ContainerSpec
from reconciler.core.events import Event, StepEnded, StepProgress, StepStarted
from reconciler.core.machine import BAD, Status
from reconciler.core.outcome import Exit
from reconciler.core.plan import Op, Phase
from reconciler.fleet import Applied, Fleet
from reconciler.nodes.errors import ErrorKind
from reconciler.testing import (
    Babbles,
    Behaviour,
    CrashLoops,
    DiesAfterReady,
    Fault,
    GivesUp,
    HangsOnGeneration,
    NeverHealthy,
    OnlyThinks,
    Serves,
    Tunes,
    llamacpp_behaviour,
)
from reconciler.testing.llamacpp import ANSWERS, QUESTION
from tests.lifecycle.harness import Story

Behaves = TypeVar("Behaves", bound=Serves)

SOLO = (("solo", "single-3"),)
LLAMA_PHASES = (
    (0.2, "llama_model_loader: loaded meta data with 20 key-value pairs"),
    (0.4, "load_tensors: loading model tensors"),
    (0.8, "common_init: warming up the model with an empty run"),
)
LONG = "boot: 10m\n      stall: 1m"


def head(kind: type[Behaves], *, name: str = "bigram", boot_s: float = 10.0, **other: Any) -> Behaves:
    """An engine of this kind that stands in for the lane's own."""
    return kind(served_name=name, port=30000, boot_s=boot_s, answers=ANSWERS, **other)


def replaced_by(bad: Behaviour) -> Callable[[ContainerSpec], Behaviour]:
    """What a good lane is replaced by once its context is edited."""
    return lambda spec: bad if "256" in spec.command else llamacpp_behaviour(spec)


def edited(folder: Path, bad: Behaviour) -> Story:
    """A lane that serves, and a spec that wants another version of it."""
    story = Story(folder, SOLO, behaviour=replaced_by(bad))
    assert Exit.OK == story.apply().exit
    story.edit("ctx-size: 512", "ctx-size: 256")
    return story


def pass_time(story: Story, seconds: float) -> None:
    """Nothing is done for a while."""

    async def wait(fleet: Fleet) -> None:
        await fleet.observe()
        await asyncio.sleep(seconds)
        await fleet.observe()

    story.run(wait)


FAILS: dict[str, tuple[Behaviour, str]] = {
    "junk": (
        head(Babbles),
        "answers junk: 66 % of its letters are Han or Cyrillic or Hebrew, only Latin is",
    ),
    "thoughts of junk": (head(Babbles, thinks=True), "thinks junk: 66 % of its letters are Han"),
    "a hang behind green pages": (
        head(HangsOnGeneration),
        "no whole answer within 60 s to 'What is the capital of France?' (at most 32 tokens): its pages answer, but",
    ),
    "a crash loop": (head(CrashLoops), "rank 0 on node3 was restarted by Docker since it booted"),
    "a fatal line": (head(GivesUp), "rank 0 on node3 cannot go on: error loading model: tensor 'output.weight'"),
    "silence": (head(NeverHealthy), "no progress for 1m, neither in the logs nor in memory or disk"),
}


@pytest.mark.parametrize("what", FAILS)
def test_what_is_not_well_is_called_what_it_is_and_the_lane_before_it_serves_again(tmp_path: Path, what: str) -> None:
    bad, expected = FAILS[what]
    story = edited(tmp_path, bad)
    story.edit("boot: 2m", LONG)
    applied = story.apply()
    assert Exit.UNCHANGED == applied.exit
    assert expected in applied.failures[0].detail
    assert {"node3/fleet-solo-r0-v1"} == {name for name, state in story.containers().items() if state == "running"}
    assert "healthy" == story.status(probe=True).lanes[0].health


def test_a_hang_is_given_up_long_before_the_budget(tmp_path: Path) -> None:
    """A stall of one minute, in a budget of ten."""
    story = edited(tmp_path, head(NeverHealthy))
    story.edit("boot: 2m", LONG)
    ended: list[StepEnded] = []
    story.apply(lambda event: ended.append(event) if isinstance(event, StepEnded) else None)
    (failed,) = (event for event in ended if event.status in BAD)
    assert 60 <= failed.seconds <= 120


def test_long_pauses_between_two_looks_do_not_stretch_the_budget(tmp_path: Path) -> None:
    story = edited(tmp_path, head(NeverHealthy))
    story.edit("boot: 2m", "boot: 60s")
    story.edit("interval: 500ms", "interval: 59s")
    ended: list[StepEnded] = []
    story.apply(lambda event: ended.append(event) if isinstance(event, StepEnded) else None)
    failed = next(event for event in ended if event.status in BAD)
    assert "not healthy within its boot budget of 60 s" in failed.detail
    assert 60 <= failed.seconds <= 70


def test_a_tuning_that_says_nothing_but_takes_memory_is_not_killed(tmp_path: Path) -> None:
    story = edited(tmp_path, head(Tunes, tuning_s=300.0, step_s=20.0))
    story.edit("boot: 2m", LONG)
    assert Exit.OK == story.apply().exit
    assert "healthy" == story.status(probe=True).lanes[0].health


def test_an_answer_that_is_in_the_thoughts_alone_counts(tmp_path: Path) -> None:
    story = edited(tmp_path, head(OnlyThinks))
    assert Exit.OK == story.apply().exit


def test_an_engine_that_dies_after_it_was_ready_is_degraded_and_boots_again(tmp_path: Path) -> None:
    """Ten seconds after it had served: the gate had passed, and the status says it at once."""
    story = edited(tmp_path, head(DiesAfterReady, after_s=10.0))
    assert Exit.OK == story.apply().exit

    pass_time(story, 30.0)
    lane = story.status().lanes[0]
    assert ("degraded", "out-of-sync") == (lane.health, lane.sync)
    assert "rank 0 on node3 exited 1" in lane.detail
    assert ["boot"] == [str(change.kind) for change in story.plan().changes]


def told(event: Event) -> str:
    return event.doing if isinstance(event, StepProgress) and event.step.op is Op.VERIFY else ""


def test_an_apply_tells_the_phase_and_for_how_long(tmp_path: Path) -> None:
    slow = head(Serves, boot_s=60.0, phases=LLAMA_PHASES)
    story = edited(tmp_path, slow)
    news: list[str] = []
    assert Exit.OK == story.apply(lambda event: news.append(told(event))).exit
    seen = dict.fromkeys(text.partition(" |")[0].rpartition(" ")[0] for text in news if text)
    assert ["/health answers", "loading weights", "setting up the model", "capturing graphs"] == list(seen)[:4]
    assert any(text.startswith("setting up the model 10s | /health answers 503 | load_tensors: ") for text in news)


def test_a_boot_that_was_proved_tells_how_long_each_phase_took(tmp_path: Path) -> None:
    story = edited(tmp_path, head(Serves, boot_s=60.0, phases=LLAMA_PHASES))
    ended: list[StepEnded] = []
    story.apply(lambda event: ended.append(event) if isinstance(event, StepEnded) else None)
    (phases,) = (event.phases for event in ended if event.step.op is Op.VERIFY)
    assert ["image", "weights", "load", "capture"] == [name for name, _ in phases][:4]
    assert [12, 12, 24] == [round(seconds) for _, seconds in phases][:3]


def test_a_status_tells_the_phase_of_a_lane_that_boots(tmp_path: Path) -> None:
    slow = head(Serves, boot_s=60.0, phases=LLAMA_PHASES)
    story = edited(tmp_path, slow)
    story.apply(stop_after_s=50.0)
    lane = story.status().lanes[0]
    assert ("progressing", "capture") == (lane.health, lane.phase)


def test_a_rank_restarted_by_its_engine_is_degraded_although_its_pages_answer(tmp_path: Path) -> None:
    story = Story(tmp_path, SOLO)
    story.apply()
    story.nodes.node("node3").runtime.require("fleet-solo-r0-v1").restart_count = 2
    lane = story.status().lanes[0]
    assert ("degraded", "rank 0 on node3 was restarted by Docker since it booted") == (lane.health, lane.detail)


def test_a_head_that_lists_another_model_is_degraded(tmp_path: Path) -> None:
    story = Story(tmp_path, SOLO)
    story.apply()
    found = story.nodes.node("node3").runtime.require("fleet-solo-r0-v1")
    found.behaviour = head(Serves, name="another")
    assert "degraded" == story.status().lanes[0].health
    assert "serves another, not bigram" in story.status().lanes[0].detail


def test_a_generation_that_hangs_is_found_by_a_status_that_asks(tmp_path: Path) -> None:
    story = Story(tmp_path, SOLO)
    story.apply()
    found = story.nodes.node("node3").runtime.require("fleet-solo-r0-v1")
    found.behaviour = head(HangsOnGeneration)
    assert "healthy" == story.status().lanes[0].health
    lane = story.status(probe=True).lanes[0]
    assert "degraded" == lane.health
    assert f"no whole answer within 60 s to {QUESTION!r}" in lane.detail


def test_a_node_that_cannot_be_asked_in_time_is_no_fault_of_the_version(tmp_path: Path) -> None:
    """What ran before serves again, and the version is not put aside: nothing was seen of it."""
    story = edited(tmp_path, head(Serves))

    def cut(event: Event) -> None:
        if isinstance(event, StepStarted | StepEnded) and event.step.op is Op.VERIFY:
            story.nodes.heal()
        if isinstance(event, StepStarted) and event.step.op is Op.VERIFY and event.step.phase is not Phase.ROLLBACK:
            story.nodes.inject(Fault.fail("node3", "inspect", ErrorKind.LOST, nth=None))

    applied = story.apply(cut)
    (failure,) = applied.failures
    assert (Exit.UNCHANGED, Status.UNREACHABLE) == (applied.exit, failure.status)
    assert "not healthy within its boot budget of 120 s" in failure.detail
    assert () == story.quarantined()
    assert {"solo": 1} == story.running_lanes()


def test_a_version_whose_way_back_was_interrupted_is_tried_again_so_that_something_serves(tmp_path: Path) -> None:
    story = edited(tmp_path, head(Babbles))

    async def interrupted(fleet: Fleet) -> Applied:
        stop = asyncio.Event()

        def take(event: Event) -> None:
            if isinstance(event, StepEnded) and (event.step.phase, event.step.op) == (Phase.ROLLBACK, Op.STOP):
                stop.set()

        return await fleet.apply(fleet.plan(await fleet.observe()), take, stop)

    assert Exit.INTERRUPTED == story.run(interrupted).exit
    assert {} == story.running_lanes()
    assert () == story.quarantined()
    assert Exit.UNCHANGED == story.apply().exit
    assert {"solo": 1} == story.running_lanes()
    assert "healthy" == story.status(probe=True).lanes[0].health
    assert 1 == len(story.quarantined())


def timed(folder: Path, tokens_s: float, *, required: bool) -> tuple[Story, list[StepEnded]]:
    """A lane that has to write 20 tokens a second behind 100, replaced by one that writes so fast; how that ended."""
    story = edited(folder, head(Serves, tokens_s=tokens_s))
    wanted = f"{{at_least: 20, context: 100, tokens: 50, required: {str(required).lower()}}}"
    story.edit("boot: 2m", f"boot: 2m\n      performance: {wanted}")
    ended: list[StepEnded] = []
    story.apply(lambda event: ended.append(event) if isinstance(event, StepEnded) else None)
    return story, [event for event in ended if event.step.op is Op.VERIFY]


def test_a_lane_that_is_too_slow_is_undone_where_speed_is_required(tmp_path: Path) -> None:
    story, verifies = timed(tmp_path, 5.0, required=True)
    assert "5.0 tokens/s in 1 stream behind 100 tokens, at least 20 are wanted" in verifies[0].detail
    assert {"solo": 1} == story.running_lanes()
    assert ["node3/fleet-solo-r0-v1"] == [name for name, state in story.containers().items() if state == "running"]


def test_a_lane_that_is_too_slow_is_told_of_where_it_is_not(tmp_path: Path) -> None:
    _, verifies = timed(tmp_path, 5.0, required=False)
    assert [(Status.APPLIED, "5.0 tokens/s in 1 stream behind 100 tokens, at least 20 are wanted")] == [
        (event.status, event.detail) for event in verifies
    ]


def test_a_lane_that_is_fast_enough_is_told_of(tmp_path: Path) -> None:
    _, verifies = timed(tmp_path, 50.0, required=True)
    (told,) = (event.detail for event in verifies)
    assert re.fullmatch(r"4[0-9]\.[0-9] tokens/s in 1 stream behind 100 tokens", told)  # and what the way there takes
