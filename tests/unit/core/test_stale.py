"""What makes a step of a saved plan stale, and what does not."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest
from hypothesis import given

from reconciler.core.desired import Gang
from reconciler.core.observed import Listener, NodeFacts, Observed
from reconciler.core.plan import Op, Plan
from reconciler.core.stale import Stale, sight, stale_steps
from reconciler.core.withhold import going, withhold
from tests.unit.core.build import (
    GIB,
    container,
    desired,
    facts,
    foreign,
    gang,
    observed,
    pin,
    plan,
    unknown,
    world,
)
from tests.unit.core.test_properties import many, planned
from tests.unit.core.worlds import World, worlds

NEW = gang("new", ("n1", "n2"), container={"gpus": 1})
OLD = gang("old", ("n1", "n2"), cluster="d")
SOLO = gang("solo", ("n3",), image=pin("b"))
OTHER = gang("other", ("n1",), cluster="d")


def seen() -> Observed:
    """`old` runs where `new` is to boot; `solo` is to boot on a node that lacks its image."""
    nodes = world(OLD, nodes=("n3",))
    return observed(*nodes.nodes.values(), sources=())


MADE = plan(desired(NEW, SOLO), seen())
SAW = sight(MADE, seen())

Change = Callable[[NodeFacts], NodeFacts]


def on(node: str, change: Change) -> Observed:
    """The nodes as they were, but for one change on one of them."""
    nodes = dict(seen().nodes)
    before = nodes[node]
    assert isinstance(before, NodeFacts)
    return Observed({**nodes, node: change(before)}, {})


def with_state(state: str) -> Change:
    return lambda node: replace(node, containers=tuple(replace(item, state=state) for item in node.containers))


def beside(*found: object, **fields: object) -> Change:
    return lambda node: replace(node, containers=(*node.containers, *found), **fields)  # type: ignore[arg-type]


def created(index: int, **how: object) -> Change:
    return beside(container(NEW, index, **how))  # type: ignore[arg-type]


@dataclass(frozen=True)
class Row:
    node: str
    change: Change
    steps: tuple[str, ...]
    field: str
    then: str
    now: str


OLD_ON_N2 = "fleet-old-r1-v1"
STOP_AND_REMOVE = (f"d/old/cut/n2/stop/{OLD_ON_N2}", f"d/old/retire/n2/remove/{OLD_ON_N2}")
ROWS = {
    "the container to stop has exited": Row(
        "n2", with_state("exited"), STOP_AND_REMOVE, f"container {OLD_ON_N2} state", "running", "exited"
    ),
    "the container to stop is gone": Row(
        "n2",
        lambda node: replace(node, containers=()),
        STOP_AND_REMOVE,
        f"container {OLD_ON_N2} state",
        "running",
        "gone",
    ),
    "the container to stop has another name": Row(
        "n2",
        lambda node: replace(node, containers=(replace(node.containers[0], name="kept"),)),
        STOP_AND_REMOVE,
        f"container {OLD_ON_N2} name",
        OLD_ON_N2,
        "kept",
    ),
    "somebody created the container": Row(
        "n2",
        created(1, state="exited", proved=False),
        ("c/new/stage/n2/create",),
        "container fleet-new-r1-v1.unproved",
        "not there",
        "exited",
    ),
    "somebody created and proved the container": Row(
        "n2",
        created(1, state="created"),
        ("c/new/stage/n2/create",),
        "container fleet-new-r1-v1",
        "not there",
        "created",
    ),
    "an image that is not pulled is gone": Row(
        "n2",
        lambda node: replace(node, images=()),
        ("c/new/stage/n2/create",),
        "image ghcr.io/owner/engine@sha256:aaaaaaaaaaaa",
        "there",
        "gone",
    ),
    "another lane of this fleet runs there": Row(
        "n1", beside(container(OTHER)), ("c/new/boot/n1/start",), "container fleet-other-r0-v1", "not there", "running"
    ),
    "a foreign container has the GPU": Row(
        "n2", beside(foreign(gpus=1)), ("c/new/boot/n2/start",), "container open-webui", "not there", "running"
    ),
    "a foreign container publishes the lane's port": Row(
        "n1",
        beside(foreign(published_ports=(30000,))),
        ("c/new/boot/n1/start",),
        "container open-webui",
        "not there",
        "running",
    ),
    "a foreign container listens on the lane's port": Row(
        "n1",
        beside(foreign(), listeners=(Listener(30000, container_id="id-open-webui"),)),
        ("c/new/boot/n1/start",),
        "container open-webui",
        "not there",
        "running",
    ),
}


@pytest.mark.parametrize("what", ROWS)
def test_a_change_makes_the_steps_stale_that_rest_on_it_and_says_then_and_now(what: str) -> None:
    row = ROWS[what]
    found = stale_steps(MADE, SAW, on(row.node, row.change))
    gangs = {step.id: step.gang for step in MADE.steps}
    assert [Stale(step, gangs[step], row.node, row.field, row.then, row.now) for step in row.steps] == [*found]


def steps_on(node: str, made: Plan = MADE) -> list[str]:
    return [step.id for step in made.steps if step.node == node]


def test_a_reboot_makes_every_step_of_the_node_stale_and_is_all_that_is_told() -> None:
    found = stale_steps(MADE, SAW, on("n2", lambda node: replace(with_state("exited")(node), boot_id="next")))
    assert steps_on("n2") == [item.step for item in found]
    assert {("boot id (n2 was rebooted)", "boot-n2", "next")} == {(item.field, item.then, item.now) for item in found}


def test_a_node_that_cannot_be_read_now_makes_its_steps_stale() -> None:
    now = Observed({**seen().nodes, "n2": unknown("n2")}, {})
    found = stale_steps(MADE, SAW, now)
    assert steps_on("n2") == [item.step for item in found]
    assert ("node n2", "answers", "no answer in 10 s") == (found[0].field, found[0].then, found[0].now)


def test_a_node_of_which_nothing_was_recorded_makes_its_steps_stale() -> None:
    found = stale_steps(MADE, [item for item in SAW if item.node != "n2"], seen())
    assert steps_on("n2") == [item.step for item in found]


IRRELEVANT: dict[str, tuple[str, Change]] = {
    "nothing": ("n1", lambda node: node),
    "free disk and memory": ("n1", lambda node: replace(node, disk_free_bytes=GIB, memory_available_bytes=GIB)),
    "an image that is to be pulled arrived": ("n3", lambda node: facts("n3", images=(pin(), pin("b")))),
    "an image that no step needs is gone": ("n3", lambda node: replace(node, images=())),
    "a foreign container without a GPU": ("n1", beside(foreign())),
    "a foreign container that does not run": ("n1", beside(foreign(state="exited", gpus=1))),
    "a foreign container with another port": ("n1", beside(foreign(published_ports=(8080,)))),
    "a container of another fleet that does not run": ("n1", beside(container(OTHER, fleet="x", state="exited"))),
    "leftovers of a lane that nobody wants": ("n1", beside(container(OTHER, state="exited"))),
    "an upgraded Docker": ("n1", lambda node: replace(node, docker_version="30")),
}


@pytest.mark.parametrize("what", IRRELEVANT)
def test_what_no_step_rests_on_makes_nothing_stale(what: str) -> None:
    node, change = IRRELEVANT[what]
    assert () == stale_steps(MADE, SAW, on(node, change))


def test_a_foreign_container_that_ran_before_makes_nothing_stale() -> None:
    wanted = desired(gang("cpu", ("n1",)))
    then = observed(facts("n1", foreign(gpus=1)))
    made = plan(wanted, then)
    assert () == stale_steps(made, sight(made, then), then)
    stopped = observed(facts("n1", foreign(gpus=1, state="exited")))
    assert () == stale_steps(made, sight(made, then), stopped)


def test_a_gpu_of_a_foreign_container_is_nothing_to_a_lane_without_one() -> None:
    wanted, then = desired(gang("cpu", ("n1",))), observed(facts("n1"))
    made = plan(wanted, then)
    assert () == stale_steps(made, sight(made, then), observed(facts("n1", foreign(gpus=1))))


def valid(made: Plan, found: tuple[Stale, ...]) -> Plan:
    return going(withhold(made, [], [], stale=found))


def gangs_of(made: Plan) -> set[str]:
    return {step.gang for step in made.steps}


@pytest.mark.parametrize(
    ("node", "left"), [("n2", {"c/solo"}), ("n3", {"c/new", "d/old"})], ids=["of two lanes", "of one"]
)
def test_what_is_still_valid_are_the_groups_without_any_stale_step(node: str, left: set[str]) -> None:
    found = stale_steps(MADE, SAW, on(node, lambda facts: replace(facts, boot_id="next")))
    rest = valid(MADE, found)
    assert left == gangs_of(rest)
    assert left == {change.gang for change in rest.changes}
    assert () == stale_steps(rest, SAW, on(node, lambda facts: replace(facts, boot_id="next")))


@many
@given(worlds())
def test_what_a_plan_was_made_from_makes_none_of_its_steps_stale(world: World) -> None:
    made = planned(world)
    assert () == stale_steps(made, sight(made, world.observed), world.observed)


@many
@given(worlds())
def test_a_reboot_of_any_node_leaves_exactly_the_groups_that_do_not_touch_it(world: World) -> None:
    made = planned(world)
    for name, state in world.observed.nodes.items():
        if isinstance(state, NodeFacts):
            now = Observed({**world.observed.nodes, name: replace(state, boot_id="next")}, world.observed.sources)
            found = stale_steps(made, sight(made, world.observed), now)
            assert {step.id for step in made.steps if step.node == name} == {item.step for item in found}
            rest = valid(made, found)
            assert name not in {step.node for step in rest.steps}


def kept(of: Gang) -> Observed:
    return world(of, state="exited")


def test_a_repair_is_stale_when_a_rank_that_lay_there_has_been_started() -> None:
    made = plan(desired(SOLO), kept(SOLO))
    now = world(SOLO)
    ops = [
        step.op
        for step in made.steps
        if step.id in {item.step for item in stale_steps(made, sight(made, kept(SOLO)), now)}
    ]
    assert Op.START in ops
