"""A command line is tried out before anything stops: what the image refuses costs no lane its place."""

from pathlib import Path

import pytest
import yaml

from reconciler.core.outcome import Exit
from reconciler.core.plan import Op, Phase
from reconciler.nodes.errors import ErrorKind
from reconciler.testing import Behaviour, Exits, Fault
from reconciler.testing.containers import SimContainer
from reconciler.testing.faults import Operation
from reconciler.testing.images import ACCEPTS
from tests.lifecycle.harness import QUAD, Story

REFUSES = Exits(after_s=1.5, code=2, lines=("usage: serve [--port PORT]", "serve: error: unrecognized arguments: --no"))
NAME = "fleet-quad-quad.preflight"


def about_to_replace(folder: Path, preflight: Behaviour = ACCEPTS, deadline: str = "30s") -> Story:
    """Two lanes run; the spec now wants the one over all four nodes, whose image tries its command line out first."""
    folder.mkdir(exist_ok=True)
    story = Story(folder, preflight=preflight)
    assert Exit.OK == story.apply().exit
    story.place(QUAD)
    try_out(story, f"{{command: [serve, --check], deadline: {deadline}}}")
    return story


def try_out(story: Story, how: str, lane: str = "quad") -> None:
    """Edit the preflight of a lane."""
    path = story.folder / "lanes.yaml"
    spec = yaml.safe_load(path.read_text())
    spec["lanes"][lane]["preflight"] = yaml.safe_load(how)
    path.write_text(yaml.safe_dump(spec))


def tried(story: Story) -> list[str]:
    """Names of the containers of preflights that are there now."""
    return [item.name for node in story.nodes.nodes for item in node.runtime.containers.values() if is_one(item.name)]


def is_one(name: str) -> bool:
    return name.endswith(".preflight")


def made(story: Story) -> int:
    """How many containers of preflights were ever created."""
    return sum(item.what == "created" and is_one(item.name) for item in story.nodes.history())


def test_it_runs_on_one_node_before_anything_is_created_or_stopped(tmp_path: Path) -> None:
    story = about_to_replace(tmp_path)
    plan = story.plan()
    step = next(step for step in plan.steps if step.op is Op.PREFLIGHT)
    assert ("node1", Phase.STAGE, NAME) == (step.node, step.phase, step.target)
    assert all(step.id in item.requires for item in plan.steps if item.op in {Op.CREATE} or item.phase is Phase.CUT)
    assert Exit.OK == story.apply().exit
    assert {"quad": 4} == story.running_lanes()
    assert [] == tried(story)
    assert 1 == made(story)
    assert story.plan().is_settled


def test_its_container_has_the_image_mounts_and_environment_of_the_rank_and_no_gpu(tmp_path: Path) -> None:
    story = about_to_replace(tmp_path)
    rank = story.plan().gang("quad/quad").ranks[0].container
    seen: list[SimContainer] = []
    look = Fault.do("node1", "start", lambda fleet: seen.extend(fleet.node("node1").runtime.containers.values()))
    story.nodes.inject(look)
    assert Exit.OK == story.apply().exit
    trial = next(item for item in seen if is_one(item.name))
    assert (rank.image, rank.mounts) == (trial.spec.image, trial.spec.mounts)
    assert {*rank.env} < {*trial.spec.env}
    assert (("serve",), ("--check",)) == (trial.spec.entrypoint, trial.spec.command)
    assert (0, (), None) == (trial.spec.gpus, trial.spec.devices, trial.owner)


def test_a_refusal_leaves_what_serves_alone_and_tells_the_last_lines(tmp_path: Path) -> None:
    story = about_to_replace(tmp_path, REFUSES)
    applied = story.apply()
    assert Exit.UNCHANGED == applied.exit
    assert {"pair": 2, "solo": 1} == story.running_lanes()
    failure = applied.failures[0]
    assert Op.PREFLIGHT is failure.step.op
    assert "unrecognized arguments: --no" in failure.detail
    assert REFUSES.lines == failure.logs
    assert "the fleet serves what it served before" in applied.summary
    assert "the image refuses the command line; its preflight exited" in failure.detail
    assert "change the spec, or mend what is shown above, then `fleet apply`" in applied.summary
    assert [] == tried(story)
    assert 3 == len(story.containers()), "nothing was created for what was refused"
    assert () == story.quarantined(), "nothing was stopped for it: trying again costs nothing"


def test_one_that_others_end_refuses_nothing(tmp_path: Path) -> None:
    """A person, or a daemon that shuts down: the image said nothing of the command line."""
    story = about_to_replace(tmp_path, Exits(after_s=1.0, code=137))
    detail = story.apply().failures[0].detail
    assert detail.startswith("the preflight exited 137 (killed)")
    assert "something killed it" in detail


def test_past_its_deadline_it_is_stopped_and_told_of(tmp_path: Path) -> None:
    story = about_to_replace(tmp_path, Exits(after_s=500.0, code=0))
    applied = story.apply()
    assert Exit.UNCHANGED == applied.exit
    assert "did not end within 30 s" in applied.failures[0].detail
    assert {"pair": 2, "solo": 1} == story.running_lanes()
    assert [] == tried(story)


def test_other_gangs_go_on_when_one_is_refused(tmp_path: Path) -> None:
    story = Story(tmp_path, preflight=REFUSES)
    try_out(story, "{command: [serve]}", lane="pair")
    applied = story.apply()
    assert Exit.UNCHANGED == applied.exit
    assert {"solo": 1} == story.running_lanes()


def test_a_lane_can_do_without(tmp_path: Path) -> None:
    story = about_to_replace(tmp_path, REFUSES)
    try_out(story, "false")
    assert Exit.OK == story.apply().exit
    assert 0 == made(story)


def test_what_boots_again_as_it_is_is_not_tried_out_again(tmp_path: Path) -> None:
    story = about_to_replace(tmp_path)
    assert Exit.OK == story.apply().exit
    story.nodes.node("node2").kill("fleet-quad-r1-v1")
    assert Op.PREFLIGHT not in {step.op for step in story.plan().steps}
    assert Exit.OK == story.apply().exit
    assert 1 == made(story)


def test_an_interrupt_leaves_nothing_of_it(tmp_path: Path) -> None:
    story = about_to_replace(tmp_path, Exits(after_s=500.0, code=0), deadline="1000s")
    applied = story.apply(stop_after_s=30.0)
    assert Exit.INTERRUPTED == applied.exit
    assert 1 == made(story)
    assert [] == tried(story)


@pytest.mark.parametrize("operation", ["create", "start", "remove"])
def test_a_killed_controller_leaves_one_that_no_plan_takes_for_a_rank_and_the_next_apply_removes(
    operation: Operation, tmp_path: Path
) -> None:
    for after in (False, True):
        story = about_to_replace(tmp_path / f"{after}")
        story.nodes.inject(Fault.kill("node1", operation, 1, after=after))
        assert story.apply_until_killed()
        assert {"pair": 2, "solo": 1} == story.running_lanes()
        story.nodes.heal()
        try_out(story, "false")  # so that it is not even tried again
        left = tried(story)
        plan = story.plan()
        assert len(left) == len([step for step in plan.steps if step.target == NAME])
        assert () == plan.foreign
        assert Exit.OK == story.apply().exit
        assert [] == tried(story)
        assert story.plan().is_settled


def test_what_is_left_of_one_alone_is_cleaned_up(tmp_path: Path) -> None:
    story = about_to_replace(tmp_path)
    story.nodes.inject(Fault.kill("node1", "start", 1, after=True))
    assert story.apply_until_killed()
    story.nodes.heal()
    try_out(story, "false")
    story.place((("pair", "pair-a"), ("solo", "single-3")))
    plan = story.plan()
    assert [("quad/quad", "clean")] == [(item.gang, item.kind) for item in plan.changes if item.gang == "quad/quad"]
    assert Exit.OK == story.apply().exit
    assert [] == tried(story)


@pytest.mark.parametrize("kind", [ErrorKind.REFUSED, ErrorKind.NO_SPACE, ErrorKind.TIMEOUT])
@pytest.mark.parametrize("operation", ["create", "start", "remove"])
def test_trouble_with_its_container_costs_no_lane_its_place(
    kind: ErrorKind, operation: Operation, tmp_path: Path
) -> None:
    story = about_to_replace(tmp_path)
    story.nodes.inject(Fault.fail("node1", operation, kind))
    applied = story.apply()
    if applied.exit is not Exit.OK:
        assert Exit.UNCHANGED == applied.exit
        assert {"pair": 2, "solo": 1} == story.running_lanes()
    story.nodes.heal()
    assert Exit.OK == story.apply().exit
    assert [] == tried(story)


def test_lost_replies_run_it_once(tmp_path: Path) -> None:
    for number in range(1, 5):
        story = about_to_replace(tmp_path / str(number))
        story.nodes.inject(Fault.lose_reply("node1", None, number, lambda call: call.mutating))
        assert Exit.OK == story.apply().exit
        assert 1 == made(story), f"reply {number}"
        assert [] == tried(story)
