"""The executable specification: what a fleet goes through, on the simulated nodes."""

from pathlib import Path

import pytest

from reconciler.core.outcome import Exit
from reconciler.core.plan import Kind, Op, Phase
from reconciler.nodes.errors import ErrorKind
from reconciler.testing import Exits, Fault, Garbage, NeverHealthy, Serves, SimulatedFleet
from tests.lifecycle.harness import PAIR_AND_SOLO, QUAD, Story

BOTH = {"pair": 2, "solo": 1}


@pytest.fixture
def story(tmp_path: Path) -> Story:
    return Story(tmp_path)


def test_apply_then_nothing_to_do_then_remove_then_nothing_to_do(story: Story) -> None:
    assert Exit.OK == story.apply().exit
    assert BOTH == story.running_lanes()
    assert story.plan().is_settled
    story.place((("solo", "single-3"),))
    assert [(Kind.STOP, "pair-a/pair")] == [(change.kind, change.gang) for change in story.plan().changes]
    assert Exit.OK == story.apply().exit
    assert {"node3/fleet-solo-r0-v1": "running"} == story.containers()
    assert story.plan().is_settled


def test_planning_makes_no_mutating_call(story: Story) -> None:
    story.plan()
    story.status(probe=True)
    assert () == story.nodes.mutations


def test_a_second_apply_makes_no_mutating_call(story: Story) -> None:
    story.apply()
    before = len(story.nodes.mutations)
    assert Exit.OK == story.apply().exit
    assert before == len(story.nodes.mutations)


def test_deleting_the_state_changes_no_plan(story: Story) -> None:
    story.apply()
    story.place(QUAD)
    before = story.plan()
    (story.folder / ".fleet" / "state.db").unlink()
    assert before == story.plan()


def test_a_big_lane_replaces_two_and_they_replace_it(story: Story) -> None:
    story.apply()
    story.place(QUAD)
    assert Exit.OK == story.apply().exit
    assert {"quad": 4} == story.running_lanes()
    story.place(PAIR_AND_SOLO)
    assert Exit.OK == story.apply().exit
    assert BOTH == story.running_lanes()
    assert () == story.nodes.overlaps()


def test_a_lane_is_stopped_only_after_all_of_its_replacement_is_staged(story: Story) -> None:
    story.apply()
    before = len(story.nodes.history())
    story.place(QUAD)
    story.apply()
    happened = [item.what for item in story.nodes.history()[before:]]
    assert 4 == happened[: happened.index("exited")].count("created")


def test_a_healthy_lane_stays_when_its_replacement_cannot_be_staged(story: Story) -> None:
    story.apply()
    story.place(QUAD)
    story.nodes.node("node4").fill_disk()
    assert Exit.REFUSED == story.apply().exit
    assert BOTH == story.running_lanes()


def test_a_disk_that_fills_while_staging_stops_no_lane(story: Story) -> None:
    story.apply()
    story.place(QUAD)
    story.nodes.inject(Fault.fail("node4", "stage", ErrorKind.NO_SPACE))
    assert Exit.UNCHANGED == story.apply().exit
    assert BOTH == story.running_lanes()
    assert Exit.OK == story.apply().exit
    assert {"quad": 4} == story.running_lanes()


def test_a_dead_rank_is_seen_and_the_gang_boots_again(story: Story) -> None:
    story.apply()
    story.nodes.node("node2").kill("fleet-pair-r1-v1")
    lane = story.status().lanes[0]
    assert ("pair-a/pair", "degraded") == (lane.gang, lane.health)
    plan = story.plan()
    assert [(Kind.REPAIR, "pair-a/pair")] == [(change.kind, change.gang) for change in plan.changes]
    assert "rank 1 on node2 exited 137 (killed)" in plan.changes[0].reason
    assert Exit.OK == story.apply().exit
    assert BOTH == story.running_lanes()
    assert "healthy" == story.status(probe=True).lanes[0].health


def test_a_rebooted_node_gets_its_lane_back(story: Story) -> None:
    story.apply()
    story.nodes.node("node1").reboot()
    assert Exit.OK == story.apply().exit
    assert BOTH == story.running_lanes()


def test_changed_args_replace_the_lane_in_place_and_the_plan_names_them(story: Story) -> None:
    story.apply()
    story.edit("ctx-size: 512", "ctx-size: 256")
    plan = story.plan()
    assert [Kind.REPLACE, Kind.REPLACE] == [change.kind for change in plan.changes]
    found = [(item.field, item.before, item.after) for item in plan.changes[0].fields]
    assert [("argv", "--ctx-size 512", "--ctx-size 256")] == found
    assert Exit.OK == story.apply().exit
    assert () == story.nodes.overlaps()
    assert story.plan().is_settled


def test_one_unreachable_node_defers_its_lane_and_nothing_else(story: Story) -> None:
    story.nodes.node("node3").cut_link()
    applied = story.apply()
    assert Exit.UNREACHABLE == applied.exit
    assert {"pair": 2} == story.running_lanes()
    story.nodes.node("node3").mend_link()
    assert Exit.OK == story.apply().exit
    assert BOTH == story.running_lanes()


def test_an_unreachable_node_is_never_read_as_empty(story: Story) -> None:
    story.apply()
    story.nodes.node("node3").cut_link()
    story.place(QUAD)
    plan = story.plan()
    assert () == plan.steps
    assert ["pair-a/pair", "quad/quad"] == [item.gang for item in plan.deferred]


def test_garbage_is_not_healthy_and_nothing_unproved_is_left_running(tmp_path: Path) -> None:
    garbage = Garbage(served_name="bigram", port=30000, boot_s=5.0)
    story = Story(tmp_path, (("solo", "single-3"),), behaviour=garbage)
    applied = story.apply()
    assert Exit.UNCHANGED == applied.exit
    assert "expected 'Paris'" in applied.failures[0].detail
    assert {} == story.running_lanes()


def test_an_engine_that_exits_at_once_is_told_with_its_code_and_last_lines(tmp_path: Path) -> None:
    story = Story(tmp_path, (("solo", "single-3"),), behaviour=Exits(after_s=2.0, code=3, lines=("no such flag",)))
    applied = story.apply()
    assert Exit.UNCHANGED == applied.exit
    failure = applied.failures[0]
    assert "rank 0 on node3 exited 3" in failure.detail
    assert "no such flag" in failure.logs


def test_an_engine_that_never_gets_healthy_is_given_up_at_its_boot_budget(tmp_path: Path) -> None:
    story = Story(tmp_path, (("solo", "single-3"),), behaviour=NeverHealthy(served_name="bigram", port=30000))
    applied = story.apply()
    assert Exit.UNCHANGED == applied.exit
    assert "not healthy within its boot budget of 120 s" in applied.failures[0].detail
    assert {} == story.running_lanes()


def test_a_replacement_that_answers_wrong_goes_and_the_same_containers_serve_again(tmp_path: Path) -> None:
    story = Story(tmp_path)
    story.apply()
    before = story.containers()
    story.edit("expect: Paris", "expect: London")
    story.edit("ctx-size: 512", "ctx-size: 256")
    applied = story.apply()
    assert Exit.UNCHANGED == applied.exit
    assert before.items() <= story.containers().items()
    assert BOTH == story.running_lanes()
    assert "was rolled back; what ran before serves again: pair-a/pair" in applied.summary
    assert {"single-3/solo", "pair-a/pair"} == {item.gang for item in story.quarantined()}


def test_a_lane_that_made_room_comes_back_when_its_successor_fails(tmp_path: Path) -> None:
    story = Story(tmp_path)
    story.apply()
    story.place(QUAD)
    story.nodes.inject(Fault.fail("node2", "start", when=lambda call: "quad" in call.ref or "fleet-quad" in call.ref))
    story.nodes.inject(Fault.fail("node2", "start"))
    applied = story.apply()
    assert Exit.UNCHANGED == applied.exit, applied.summary
    assert BOTH == story.running_lanes()
    assert "what ran before serves again: pair-a/pair, single-3/solo" in applied.summary
    story.nodes.heal()
    assert Exit.OK == story.apply().exit
    assert {"quad": 4} == story.running_lanes()


def test_a_way_back_that_fails_too_says_what_runs_where_and_what_to_do(tmp_path: Path) -> None:
    story = Story(tmp_path)
    story.apply()
    story.place(QUAD)
    story.nodes.inject(Fault.fail("node2", "start", nth=None))
    applied = story.apply()
    assert Exit.NEEDS_A_PERSON == applied.exit
    assert "could not be brought back: pair-a/pair" in applied.summary
    assert {"solo": 1} == story.running_lanes()
    story.nodes.heal()
    assert Exit.OK == story.apply().exit
    assert {"quad": 4} == story.running_lanes()


def test_a_node_that_reboots_in_a_boot_is_waited_for_and_serves_again_what_it_served(tmp_path: Path) -> None:
    story = Story(tmp_path)
    story.apply()
    story.place(QUAD)

    def reboot(fleet: SimulatedFleet) -> None:
        fleet.node("node4").power_off()
        fleet.after(120.0, lambda later: later.node("node4").power_on())

    story.nodes.inject(Fault.do("node4", "start", reboot))
    applied = story.apply()
    assert Exit.UNCHANGED == applied.exit, applied.summary
    assert BOTH == story.running_lanes()
    assert () == story.quarantined(), "the node went away: that is no fault of the version"


def test_one_gang_that_fails_does_not_hold_up_another(story: Story) -> None:
    story.nodes.inject(Fault.fail("node3", "start"))
    applied = story.apply()
    assert Exit.UNCHANGED == applied.exit
    assert ["single-3/solo"] == [item.step.gang for item in applied.failures]
    assert {"pair": 2} == story.running_lanes()
    assert Exit.OK == story.apply().exit
    assert BOTH == story.running_lanes()


def test_a_foreign_container_on_the_port_refuses_the_plan_and_is_named(story: Story) -> None:
    story.nodes.add_foreign("node3", "open-webui", ports=(30000,))
    plan = story.plan()
    assert ["foreign-port"] == [item.code for item in plan.refusals]
    assert "open-webui" in plan.refusals[0].summary
    assert [] == [step.id for step in plan.steps if step.gang == "single-3/solo"]


def test_an_empty_spec_stops_nothing(story: Story) -> None:
    story.apply()
    story.place(())
    assert ["empty"] == [item.code for item in story.plan().refusals]


def test_an_interrupt_ends_the_wait_at_once_and_the_next_apply_goes_on(story: Story) -> None:
    applied = story.apply(stop_after_s=25.0)
    assert Exit.INTERRUPTED == applied.exit
    assert {Kind.PROVE} == {change.kind for change in story.plan().changes}
    assert {Phase.VERIFY, Phase.CONFIRM} == {step.phase for step in story.plan().steps}
    assert Exit.OK == story.apply().exit
    assert BOTH == story.running_lanes()


def test_the_same_image_on_two_kinds_of_store_is_no_reason_to_pull(tmp_path: Path) -> None:
    story = Story(tmp_path, QUAD)
    story.apply()
    ids = {node.facts().images[0].id for node in story.nodes.nodes}
    assert 2 == len(ids)
    assert story.plan().is_settled
    assert [] == [step for step in story.plan().steps if step.op is Op.PULL]


def test_a_lane_that_serves_another_model_is_not_healthy(tmp_path: Path) -> None:
    other = Serves(served_name="another", port=30000, boot_s=5.0)
    story = Story(tmp_path, (("solo", "single-3"),), behaviour=other)
    applied = story.apply()
    assert Exit.UNCHANGED == applied.exit
    assert "serves another, not bigram" in applied.failures[0].detail


def test_a_model_that_is_missing_refuses_the_plan_and_no_lane_is_stopped(story: Story) -> None:
    story.apply()
    story.edit("good.gguf", "nothere.gguf")
    story.nodes.node("node1").missing_paths.add("/srv/models/nothere.gguf")
    plan = story.plan()
    assert [("model-missing", "pair-a/pair", "node1")] == [(item.code, item.gang, item.node) for item in plan.refusals]
    assert "there is no /srv/models/nothere.gguf" in plan.refusals[0].summary
    assert Exit.REFUSED == story.apply().exit
    assert BOTH == story.running_lanes()


def test_paths_are_looked_for_only_where_a_rank_has_to_boot(story: Story) -> None:
    story.apply()
    before = len(story.nodes.calls)
    story.plan()
    assert 4 == [call.operation for call in story.nodes.calls[before:]].count("observe")


def test_after_a_failed_apply_the_status_says_why_until_the_lane_is_healthy(story: Story) -> None:
    story.place((("solo", "single-3"),))
    story.edit("expect: Paris", "expect: London")
    assert Exit.UNCHANGED == story.apply().exit
    assert "expected 'London'" in story.status().lanes[0].last_failure
    story.edit("expect: London", "expect: Paris")
    assert Exit.OK == story.apply().exit
    assert "" == story.status().lanes[0].last_failure


def test_a_lane_that_moves_is_stopped_only_when_its_new_place_is_staged(tmp_path: Path) -> None:
    """No node is shared: nothing but the lane itself ties the two."""
    story = Story(tmp_path, (("solo", "single-3"),))
    assert Exit.OK is story.apply().exit
    story.place((("solo", "pair-a"),))
    story.nodes.inject(Fault.fail("node1", "stage"))
    failed = story.apply()
    assert Exit.UNCHANGED is failed.exit, failed.summary
    assert {"solo": 1} == story.running_lanes()
    assert "running" == story.containers()["node3/fleet-solo-r0-v1"]
    assert Exit.OK is story.apply().exit
    assert ["node1/fleet-solo-r0-v1"] == list(story.containers())


def permit(story: Story) -> str:
    """A foreign container on the port of a lane that may stop it; its id."""
    web = story.nodes.add_foreign("node3", "open-webui", ports=(30000,))
    spec = story.folder / "fleet.yaml"
    spec.write_text(spec.read_text().replace("cluster: single-3", "cluster: single-3\n  may_stop: [open-webui]"))
    return web


def test_a_foreign_container_that_may_be_stopped_makes_room(story: Story) -> None:
    web = permit(story)
    assert Exit.OK == story.apply().exit
    assert BOTH == story.running_lanes()
    found = story.nodes.node("node3").container(web)
    assert found is not None
    assert "exited" == found.state
    assert story.plan().is_settled


def test_a_foreign_container_that_made_room_runs_again_when_the_lane_fails(story: Story) -> None:
    web = permit(story)
    story.nodes.inject(Fault.fail("node3", "start"))
    applied = story.apply()
    assert Exit.UNCHANGED == applied.exit, applied.summary
    found = story.nodes.node("node3").container(web)
    assert found is not None
    assert "running" == found.state
    assert "what ran before runs again: open-webui on node3" in applied.summary
