"""What images go through on the simulated nodes: nothing half counts, no lane stops in vain, nothing moves twice."""

from pathlib import Path

import pytest

from reconciler.core.events import Event, StepEnded
from reconciler.core.outcome import Exit
from reconciler.core.plan import Op
from reconciler.nodes.errors import ErrorKind
from reconciler.testing import Fault, SimImage
from reconciler.testing.images import SHARES
from tests.lifecycle.harness import PAIR_AND_SOLO, QUAD, Story

BOTH = {"pair": 2, "solo": 1}
SIZE = 10**9
TOP = SIZE * SHARES[-1] // 100


@pytest.fixture
def story(tmp_path: Path) -> Story:
    return Story(tmp_path)


def serving(story: Story) -> Story:
    """The pair and the solo lane run, and the spec wants them of the next image, whose last layer is another."""
    assert Exit.OK == story.apply().exit
    story.use(story.next_image)
    return story


def sent(story: Story) -> int:
    return story.nodes.sent_bytes


def received(story: Story) -> dict[str, int]:
    return dict(story.nodes.traffic.received)


def has(story: Story, node: str, image: SimImage) -> bool:
    return story.nodes.node(node).facts().image_for(image.pin) is not None


# each byte once


def test_a_gang_gets_its_image_once_from_the_controller(tmp_path: Path) -> None:
    story = Story(tmp_path, QUAD)
    assert {"node1"} == {item.seed for item in story.plan().transfers}
    assert Exit.OK == story.apply().exit
    assert SIZE == sent(story)
    assert {f"node{number}": SIZE for number in (1, 2, 3, 4)} == received(story)
    assert {"node1": 3 * SIZE} == dict(story.nodes.traffic.relayed)


def test_when_one_layer_changes_only_that_layer_moves(story: Story) -> None:
    serving(story)
    before = sent(story)
    plan = story.plan()
    assert {(TOP, 4, 5)} == {(item.missing_bytes, item.layers_shared, item.layers) for item in plan.transfers}
    assert Exit.OK == story.apply().exit
    assert 2 * TOP == sent(story) - before  # for two gangs: the pair and the solo lane
    assert BOTH == story.running_lanes()


def test_when_everything_is_there_nothing_moves(story: Story) -> None:
    story.apply()
    before = received(story)
    assert Exit.OK == story.sync().exit
    assert Exit.OK == story.apply().exit
    assert before == received(story)


def test_a_node_that_has_it_serves_its_neighbours_and_the_controller_sends_nothing(tmp_path: Path) -> None:
    story = Story(tmp_path, QUAD)
    story.nodes.node("node3").load_image(story.image.digest)
    assert {"node3"} == {item.seed for item in story.plan().transfers}
    assert Exit.OK == story.apply().exit
    assert 0 == sent(story)
    assert {"node3": 3 * SIZE} == dict(story.nodes.traffic.relayed)


def test_a_pull_says_how_much_came_and_by_whom(tmp_path: Path) -> None:
    story = Story(tmp_path, QUAD)
    ends: list[StepEnded] = []

    def keep(event: Event) -> None:
        if isinstance(event, StepEnded) and event.step.op is Op.PULL:
            ends.append(event)

    story.apply(keep)
    seed = {"node1": "953.7 MiB, passes it on to node2 node3 node4"}
    assert seed | {f"node{number}": "953.7 MiB, from node1" for number in (2, 3, 4)} == {
        end.step.node: end.detail for end in ends
    }


def test_a_seed_that_dies_in_the_middle_is_done_without(tmp_path: Path) -> None:
    story = Story(tmp_path, QUAD)
    story.nodes.after(5.0, lambda fleet: fleet.node("node1").power_off())
    applied = story.sync()
    assert Exit.UNCHANGED == applied.exit
    assert ["node1"] == [item.step.node for item in applied.failures]
    assert all(has(story, node, story.image) for node in ("node2", "node3", "node4"))
    assert SIZE < sent(story) < 4 * SIZE
    story.nodes.node("node1").power_on()
    before = received(story)["node2"]
    assert Exit.OK == story.sync().exit
    assert has(story, "node1", story.image)
    assert before == received(story)["node2"]


def test_nodes_without_python_get_it_from_the_controller_each(tmp_path: Path) -> None:
    story = Story(tmp_path, QUAD, has_python=False)
    assert Exit.OK == story.sync().exit
    assert (4 * SIZE, {}) == (sent(story), dict(story.nodes.traffic.relayed))


# presence is content


def test_an_image_that_is_listed_but_not_whole_is_brought(story: Story) -> None:
    story.nodes.node("node3").load_image(story.image.digest, usable=False)
    assert "node3" in {item.node for item in story.plan().transfers}
    assert Exit.OK == story.apply().exit
    assert BOTH == story.running_lanes()


def test_the_same_content_under_another_name_is_named_and_no_layer_moves(tmp_path: Path) -> None:
    story = Story(tmp_path, QUAD)
    for node in story.nodes.nodes:
        node.load_image(story.mirrored.digest)
    plan = story.plan()
    assert {(0, True, None)} == {(item.missing_bytes, item.is_naming, item.seed) for item in plan.transfers}
    assert Exit.OK == story.apply().exit
    assert {} == received(story)
    assert story.plan().is_settled


def test_a_layer_deleted_behind_the_stores_back_is_seen_and_brought_again(story: Story) -> None:
    story.apply()
    story.nodes.node("node3").delete_layer(story.image.digest)
    assert ["node3"] == [item.node for item in story.sync_plan().transfers]
    before = received(story)["node3"]
    assert Exit.OK == story.sync().exit
    assert TOP == received(story)["node3"] - before
    assert BOTH == story.running_lanes()
    assert story.sync_plan().is_settled


def test_prune_takes_nothing_that_was_brought(story: Story) -> None:
    story.sync()
    for node in story.nodes.nodes:
        node.prune_images()
    assert story.sync_plan().is_settled


def test_what_prune_all_took_is_brought_again(story: Story) -> None:
    story.sync()
    for node in story.nodes.nodes:
        node.prune_images(everything=True)
    assert 3 == len(story.sync_plan().steps)
    assert Exit.OK == story.sync().exit
    assert story.sync_plan().is_settled


# nothing half


def nothing_half(story: Story, node: str) -> None:
    """The lanes run as before, and the node has not the next image."""
    assert BOTH == story.running_lanes()
    assert not has(story, node, story.next_image)


def test_a_disk_that_fills_in_the_middle_stops_no_lane_and_other_nodes_go_on(story: Story) -> None:
    serving(story)
    story.nodes.after(0.4, lambda fleet: fleet.node("node3").fill_disk())
    applied = story.sync()
    assert Exit.UNCHANGED == applied.exit
    assert "no space left on device of node3" in applied.failures[0].detail
    assert "could not be brought: ghcr.io/example/llamacpp to node3; no lane was touched" in applied.summary
    nothing_half(story, "node3")
    assert has(story, "node1", story.next_image)
    assert has(story, "node2", story.next_image)


def test_a_source_that_lies_leaves_nothing_and_stops_no_lane(story: Story) -> None:
    serving(story)
    story.nodes.registry.lying.add(story.next_image.digest)
    applied = story.apply()
    assert Exit.UNCHANGED == applied.exit
    assert "what came is not what its digest says" in applied.failures[0].detail
    for node in ("node1", "node2", "node3"):
        nothing_half(story, node)
    story.nodes.registry.lying.clear()
    assert Exit.OK == story.apply().exit


def test_an_image_that_is_not_built_for_the_nodes_is_refused_before_anything_moves(story: Story) -> None:
    serving(story)
    before = received(story)
    story.use(story.foreign)
    applied = story.apply()
    assert Exit.REFUSED == applied.exit
    assert {"image-platform"} == {item.code for item in story.plan().refusals}
    assert (BOTH, before) == (story.running_lanes(), received(story))


def test_too_little_disk_refuses_the_plan_with_figures(story: Story) -> None:
    story.nodes.node("node1").fill_disk(leave_bytes=3 * SIZE)
    refusal = story.plan().refusals[0]
    assert ("disk", "node1") == (refusal.code, refusal.node)
    assert "node1 has 2.8 GiB free, and needs 2.9 GiB for image ghcr.io/example/llamacpp@" in refusal.summary
    assert "(953.7 MiB to fetch, 1.9 GiB unpacked)" in refusal.summary
    story.nodes.node("node1").fill_disk(leave_bytes=round(3.2 * SIZE))
    assert () == story.plan().refusals


@pytest.mark.parametrize(("node", "rest"), [("node1", SIZE), ("node3", SIZE * 6 // 10)], ids=["classic", "containerd"])
def test_after_a_broken_pull_a_second_run_moves_what_the_store_has_not_kept(story: Story, node: str, rest: int) -> None:
    """The classic store throws a broken pull away; the containerd store keeps the layers that came."""
    story.nodes.after(5.0, lambda fleet: fleet.node(node).stop_docker())
    assert Exit.UNCHANGED == story.sync().exit
    assert not has(story, node, story.image)
    story.nodes.node(node).start_docker()
    before = received(story)
    assert Exit.OK == story.sync().exit
    assert {node: rest} == {
        name: count - before[name] for name, count in received(story).items() if count > before[name]
    }


def test_a_cut_of_the_link_that_is_mended_in_time_costs_nothing(story: Story) -> None:
    story.nodes.after(5.0, lambda fleet: fleet.node("node3").cut_link())
    story.nodes.after(15.0, lambda fleet: fleet.node("node3").mend_link())
    assert Exit.OK == story.sync().exit
    assert SIZE == received(story)["node3"]


def test_an_interrupted_sync_leaves_nothing_half_and_goes_on(story: Story) -> None:
    serving(story)
    applied = story.sync(stop_after_s=0.6)
    assert Exit.INTERRUPTED == applied.exit
    assert "`fleet images sync` goes on from here" in applied.summary
    nothing_half(story, "node3")
    assert Exit.OK == story.sync().exit
    assert has(story, "node3", story.next_image)


def test_a_reply_lost_after_the_pull_is_settled_by_looking(story: Story) -> None:
    story.nodes.inject(Fault.lose_reply("node3", "stage"))
    assert Exit.OK == story.sync().exit
    assert SIZE == received(story)["node3"]


# sync


def test_a_sync_brings_images_and_starts_and_stops_nothing(story: Story) -> None:
    serving(story)
    before = story.containers()
    applied = story.sync()
    assert (Exit.OK, "1 image brought to 3 nodes") == (applied.exit, applied.summary)
    assert before == story.containers()
    assert {"stage"} == {call.operation for call in story.nodes.mutations[-3:]}
    moved = received(story)
    assert Exit.OK == story.apply().exit
    assert moved == received(story)


def test_a_sync_of_one_cluster_leaves_the_others(story: Story) -> None:
    assert Exit.OK == story.sync("single-3").exit
    assert {"node3"} == set(received(story))


def test_a_sync_brings_nothing_for_lanes_that_are_placed_nowhere(story: Story) -> None:
    story.place(PAIR_AND_SOLO[1:])
    assert ["node3"] == [step.node for step in story.sync_plan().steps]


def test_a_node_that_cannot_be_reached_is_told_and_the_others_get_theirs(story: Story) -> None:
    story.nodes.node("node2").cut_link()
    applied = story.sync()
    assert (Exit.UNREACHABLE, "1 image brought to 2 nodes; not reached: node2") == (applied.exit, applied.summary)
    assert has(story, "node1", story.image)
    story.nodes.node("node2").mend_link()
    assert Exit.OK == story.sync().exit
    assert has(story, "node2", story.image)


def test_a_stage_that_fails_on_one_node_does_not_hold_up_the_others(story: Story) -> None:
    story.nodes.inject(Fault.fail("node2", "stage", ErrorKind.REFUSED))
    assert Exit.UNCHANGED == story.sync().exit
    assert {"node1", "node3"} == {node.name for node in story.nodes.nodes if has(story, node.name, story.image)}
    assert Exit.OK == story.sync().exit


def test_a_sync_asks_nothing_of_nodes_it_brings_nothing_to(story: Story) -> None:
    story.nodes.node("node3").power_off()
    assert Exit.OK == story.sync("pair").exit
    assert set(story.sync_plan("pair").unknown) == set()
    assert ["node3"] == [state.node for state in story.sync_plan().unknown]
