"""Where the trial of a command line stands in a plan, and that its container is never taken for a rank."""

from dataclasses import replace

from hypothesis import given

from reconciler.core.classify import by_gang, ours
from reconciler.core.desired import Preflight, SecretRef
from reconciler.core.identity import owner_by
from reconciler.core.plan import Kind, Op, Phase
from reconciler.core.preflight import preflight_container, preflight_labels, preflight_mark, preflight_name
from tests.unit.core.build import desired, facts, gang, observed, of_op, pin, plan, source, unknown, world
from tests.unit.core.test_properties import many, planned
from tests.unit.core.worlds import World, left_of_preflight, worlds

CHECK = Preflight(1, ("vllm",), ("serve", "--check"), deadline_s=30.0)
LANE = replace(gang("a", ("n1", "n2"), container={"gpus": 1, "devices": ("/dev/infiniband",)}), preflight=CHECK)
OLD = gang("old", ("n1", "n2"), cluster="d")


def test_it_comes_after_the_pull_on_its_node_and_before_whatever_is_created_or_stopped() -> None:
    running = [world(OLD).facts(node) for node in ("n1", "n2")]
    made = plan(desired(LANE), observed(*(replace(item, images=()) for item in running if item), sources=[source()]))
    [step] = of_op(made, Op.PREFLIGHT)
    assert ("n2", 1, Phase.STAGE, "fleet-c-a.preflight") == (step.node, step.rank, step.phase, step.target)
    assert ("c/a/stage/n2/pull",) == step.requires
    assert all(step.id in item.requires for item in of_op(made, Op.CREATE))
    assert [True, True] == [step.id in item.requires for item in of_op(made, Op.STOP)]


def test_a_gang_that_boots_the_same_containers_again_does_without() -> None:
    stopped = world(LANE, state="exited")
    assert [] == of_op(plan(desired(LANE), stopped), Op.PREFLIGHT)


def test_a_rank_whose_container_is_there_is_not_tried_again_whatever_became_of_its_image() -> None:
    one, two = (item for node in ("n1", "n2") if (item := world(LANE, state="exited").facts(node)) is not None)
    made = plan(desired(LANE), observed(replace(one, containers=()), replace(two, images=()), sources=[source()]))
    assert ["n1"] == [step.node for step in of_op(made, Op.CREATE)]
    assert [] == of_op(made, Op.PREFLIGHT)


def test_its_container_is_the_ranks_own_without_what_only_a_running_engine_needs() -> None:
    container = preflight_container(LANE, CHECK)
    rank = LANE.ranks[1].container
    assert (rank.image, rank.mounts, 0, ()) == (container.image, container.mounts, container.gpus, container.devices)
    assert (("vllm",), ("serve", "--check")) == (container.entrypoint, container.command)
    assert {*rank.env, ("NVIDIA_VISIBLE_DEVICES", "void")} == {*container.env}


def test_its_labels_are_no_ranks_and_tell_whose_it_is_and_hold_no_secret_value() -> None:
    secret = replace(LANE.ranks[1], container=replace(LANE.ranks[1].container, env=(("TOKEN", SecretRef("env:T")),)))
    lane = replace(LANE, ranks=(LANE.ranks[0], secret))
    marks = preflight_labels("lab", lane, preflight_container(lane, CHECK), "run/step")
    assert owner_by(preflight_name(lane), marks) is None
    mark = preflight_mark(preflight_name(lane), marks)
    assert mark is not None
    assert ("lab", "c/a", "run/step") == (mark.fleet, mark.gang, mark.operation)
    assert preflight_mark("fleet-a-r0-v1", marks) is None, "a copy under another name is nobody's to remove"
    assert preflight_mark(preflight_name(lane), {**marks, "fleet.lane": ""}) is None


def test_what_is_left_of_one_is_removed_once() -> None:
    left = left_of_preflight(LANE)
    at_work = plan(desired(LANE), observed(facts("n1"), facts("n2", left, images=(pin("a"),))))
    assert [] == of_op(at_work, Op.REMOVE), "its own step removes it"
    elsewhere = plan(desired(LANE), observed(facts("n1", left), facts("n2", images=(pin("a"),))))
    assert [("n1", left.id)] == [(step.node, step.container_id) for step in of_op(elsewhere, Op.REMOVE)]
    settled = [item for node in ("n1", "n2") if (item := world(LANE).facts(node)) is not None]
    alone = observed(replace(settled[0], containers=(*settled[0].containers, left)), settled[1])
    made = plan(desired(LANE), alone)
    assert [Kind.CLEAN] == [change.kind for change in made.changes]
    assert [Op.REMOVE] == [step.op for step in made.steps]


def test_one_of_another_fleet_and_one_that_cannot_be_seen_are_left_alone() -> None:
    other = left_of_preflight(LANE, "running", fleet="other")
    made = plan(desired(), observed(facts("n1", other), unknown("n2")))
    assert () == made.steps
    assert [other.name] == [item.name for item in made.foreign]


@many
@given(worlds())
def test_no_plan_cuts_or_creates_before_its_preflight_and_none_is_a_rank(world: World) -> None:
    made = planned(world)
    for step in of_op(made, Op.PREFLIGHT):
        assert all(step.id in item.requires for item in made.steps if item.gang == step.gang and item.op is Op.CREATE)
        assert not [item for item in made.steps if item.gang == step.gang and item.op is Op.START and not item.requires]
    found = by_gang(ours(world.desired, world.observed)).values()
    assert not [item for placed in found for item in placed if item.container.preflight]
    assert not [item for item in made.foreign if item.name.endswith(".preflight")]
