"""Random fleets for properties, and a tiny pure model of what the steps of a plan do to the nodes.

The model is written apart from the executor: it asserts, step by step, what each effect may take for granted.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from hypothesis import strategies as st

from reconciler.core.desired import Desired, Gang, Preflight, Ready, SecretRef
from reconciler.core.identity import labels, owner_of, proved_name, unproved_name
from reconciler.core.observed import (
    Container,
    Gpu,
    Listener,
    LocalImage,
    NodeFacts,
    Observed,
    Source,
    SourceImage,
    SourceMissing,
    SourceUnknown,
    Unknown,
    UnknownKind,
)
from reconciler.core.plan import Op, Plan, Step
from reconciler.core.preflight import preflight_labels, preflight_mark, preflight_name
from tests.unit.core.build import (
    FLEET,
    PLATFORM,
    container,
    desired,
    digest,
    facts,
    foreign,
    gang,
    holding,
    layer,
    local_id,
    observed,
    pin,
    source,
    unknown,
)

T = TypeVar("T")
NODES = ("n1", "n2", "n3", "n4", "n5", "n6")
SECRET_VALUE = "S3CR3T-VALUE"
TOKEN = SecretRef("env:TOKEN")
LETTERS = ("a", "b")
VERSIONS = ("v1", "v2")


@dataclass(frozen=True)
class World:
    """One spec and what is found."""

    desired: Desired
    observed: Observed


def _version(lane: str, cluster: str, nodes: Sequence[str], draw: st.DrawFn, *, wanted: bool, shares: bool) -> Gang:
    """A gang of one of few versions, so that what is found often is what is wanted."""
    token = TOKEN if wanted or draw(st.booleans()) else SECRET_VALUE
    port = {"s": 30001}.get(lane, 30000)
    made = gang(
        lane,
        nodes,
        "serve",
        draw(st.sampled_from(VERSIONS)),
        cluster=cluster,
        image=pin(draw(st.sampled_from(LETTERS))),
        shares=shares,
        container={"env": (("TOKEN", token),), "gpus": draw(st.sampled_from((0, 1)))},
        ports=(port,),
        memory_bytes=draw(st.sampled_from((None, 2**30))),
    )
    if draw(st.booleans()):
        made = replace(made, preflight=Preflight(len(made.ranks) - 1, ("check",)))
    if len(made.ranks) > 1 and draw(st.booleans()):
        waves = (tuple(range(1, len(made.ranks))), (0,))
        ranks = tuple(replace(rank, ready=Ready(50052)) if rank.index else rank for rank in made.ranks)
        return replace(made, boot_order=waves, ranks=ranks)
    return made


@st.composite
def wanted_gangs(draw: st.DrawFn) -> tuple[Gang, ...]:
    """Up to three lanes that share no node, and sometimes two that share theirs."""
    nodes = list(draw(st.permutations(NODES)))
    gangs = []
    for lane in ("a", "b", "c")[: draw(st.integers(0, 3))]:
        size = draw(st.integers(1, 3))
        taken, nodes = nodes[:size], nodes[size:]
        if taken:
            shares = draw(st.booleans())
            gangs.append(_version(lane, draw(st.sampled_from("cd")), taken, draw, wanted=True, shares=shares))
    partner = next((one for one in gangs if one.shares), None)
    if partner is not None:
        gangs.append(_version("s", "c", partner.nodes, draw, wanted=True, shares=True))
    return tuple(gangs)


STATES = ("running", "running", "running", "exited", "created", "paused", "restarting", "dead")


@st.composite
def _left_by(draw: st.DrawFn, past: Gang, fleet: str) -> list[tuple[str, Container]]:
    """What some earlier run left of a gang: some ranks, each in some state."""
    is_tidy = draw(st.booleans())  # half of them whole and alike, as runs that went well leave them
    revision, proved = draw(st.integers(1, 3)), draw(st.booleans())
    left = []
    for rank in past.ranks:
        state = "running" if is_tidy else draw(st.sampled_from((*STATES, "gone", "gone")))
        if state == "gone":
            continue
        found = container(
            past, rank.index, state=state, revision=revision, fleet=fleet, proved=proved or (state == "exited")
        )
        if not is_tidy and draw(st.integers(0, 5)) == 0:
            found = replace(found, restart_policy="always")
        left.append((rank.node, found))
    return left


@st.composite
def _containers(draw: st.DrawFn, gangs: tuple[Gang, ...]) -> dict[str, list[Container]]:
    found: dict[str, list[Container]] = {node: [] for node in NODES}
    placed: list[tuple[str, Container]] = []
    for one in gangs:
        if draw(st.booleans()):
            placed += draw(_left_by(one, FLEET))
    for _ in range(draw(st.integers(0, 4))):
        nodes = draw(st.permutations(NODES))[: draw(st.integers(1, 3))]
        lane, cluster = draw(st.sampled_from("abcxy")), draw(st.sampled_from("cd"))
        past = _version(lane, cluster, nodes, draw, wanted=False, shares=False)
        placed += draw(_left_by(past, draw(st.sampled_from((FLEET, FLEET, FLEET, "other")))))
    for _ in range(draw(st.integers(0, 2))):
        name = draw(st.sampled_from(("open-webui", "ollama", "fleet-a-r0-v1", "fleet-b-r0-v2.unproved")))
        state, gpus = draw(st.sampled_from(("running", "exited"))), draw(st.sampled_from((0, 0, 0, 1)))
        placed.append((draw(st.sampled_from(NODES)), foreign(name, state, gpus=gpus)))
    for one in gangs:
        if draw(st.integers(0, 4)) == 0:
            placed.append((draw(st.sampled_from(NODES)), left_of_preflight(one, draw(st.sampled_from(STATES)))))
    for node, item in placed:
        if item.name not in {other.name for other in found[node]}:
            found[node].append(item)
    return found


def left_of_preflight(of: Gang, state: str = "exited", fleet: str = FLEET) -> Container:
    """What a killed controller has left of the preflight of a gang."""
    marks = preflight_labels(fleet, of, of.ranks[0].container, "run/step")
    name = preflight_name(of)
    made = foreign(name, state)
    return replace(made, preflight=preflight_mark(name, marks))


@st.composite
def _node(draw: st.DrawFn, name: str, found: list[Container]) -> NodeFacts | Unknown:
    if draw(st.integers(0, 9)) == 0:
        return unknown(name, draw(st.sampled_from([UnknownKind.TIMEOUT, UnknownKind.OFF])))
    images = [pin(letter) for letter in LETTERS if draw(st.booleans())]
    listeners = [Listener(30000, process="nginx")] if draw(st.integers(0, 19)) == 0 else []
    made = facts(name, *found, images=images, listeners=tuple(listeners), gpus=(Gpu("GB10"),))
    shared = (holding(layer("base", 2**28)),) if draw(st.booleans()) else ()
    return replace(
        made,
        images=(*(replace(image, complete=draw(st.booleans())) for image in made.images), *shared),
        has_python=draw(st.booleans()),
        store=draw(st.sampled_from(("classic", "containerd"))),
        disk_free_bytes=draw(st.sampled_from((None, 2**31 + 2**30, 2**39, 2**39))),
    )


@st.composite
def _source(draw: st.DrawFn, letter: str) -> Source:
    platform = draw(st.sampled_from((PLATFORM, PLATFORM, PLATFORM, "linux/amd64")))
    known = SourceImage(digest(letter), ((platform, 2**30),))
    layered = source(letter, *(layer(f"{name}", 2**28) for name in ("base", letter, "top")))
    others: list[Source] = [SourceUnknown(digest(letter), "timeout"), SourceMissing(digest(letter), "not found")]
    return draw(st.sampled_from([known, layered, layered, *others]))


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """A spec of up to four lanes on six nodes, and nodes in any state."""
    gangs = draw(wanted_gangs())
    found = draw(_containers(gangs))
    states = [draw(_node(name, found[name])) for name in NODES]
    return World(desired(*gangs, nodes=NODES), observed(*states, sources=[draw(_source(one)) for one in LETTERS]))


def shuffled(world: World, seed: int) -> World:
    """The same world, written down in another order."""
    dice = random.Random(seed)

    def mixed(items: Sequence[T]) -> tuple[T, ...]:
        return tuple(dice.sample(list(items), len(items)))

    states = {
        name: replace(
            state,
            containers=mixed(state.containers),
            images=mixed(state.images),
            listeners=mixed(state.listeners),
        )
        if isinstance(state, NodeFacts)
        else state
        for name, state in mixed(list(world.observed.nodes.items()))
    }
    sources = dict(mixed(list(world.observed.sources.items())))
    wanted = replace(world.desired, nodes=mixed(world.desired.nodes), gangs=mixed(world.desired.gangs))
    return World(wanted, Observed(states, sources))


def some_order(plan: Plan, seed: int) -> list[Step]:
    """All steps in one of the orders that their requirements allow."""
    dice = random.Random(seed)
    left, done, order = list(plan.steps), set[str](), list[Step]()
    while left:
        step = dice.choice([item for item in left if done.issuperset(item.requires)])
        left.remove(step)
        done.add(step.id)
        order.append(step)
    return order


def after(world: World, plan: Plan, steps: Sequence[Step]) -> World:
    """The world once these steps are done."""
    nodes = dict(world.observed.nodes)
    for step in steps:
        if step.node is not None and step.op not in {Op.ROOM, Op.READY}:
            state = nodes[step.node]
            assert isinstance(state, NodeFacts), f"{step.id} touches a node that is not known"
            nodes[step.node] = _effect(world, plan, step, state)
    return replace(world, observed=replace(world.observed, nodes=nodes))


def _effect(world: World, plan: Plan, step: Step, state: NodeFacts) -> NodeFacts:
    if step.op is Op.PULL:
        image = plan.gang(step.gang).ranks[step.rank or 0].container.image
        local = LocalImage(local_id(state.node, image), (image.digest,))
        return replace(state, images=(*(item for item in state.images if item.id != local.id), local))
    if step.op is Op.CREATE:
        return replace(state, containers=(*state.containers, _created(plan, step, state)))
    if step.op is Op.PREFLIGHT:
        return _tried(plan, step, state)
    found = _found(step, state)
    rest = tuple(item for item in state.containers if item.id != found.id)
    if step.op is Op.REMOVE:
        return replace(state, containers=rest)
    changed = _changed(world, step, state, found)
    assert changed.name not in {item.name for item in rest}, f"{step.id}: the name {changed.name} is taken"
    return replace(state, containers=(*rest, changed))


def _tried(plan: Plan, step: Step, state: NodeFacts) -> NodeFacts:
    """The image is there; what an earlier one has left is gone afterwards."""
    preflight = plan.gang(step.gang).preflight
    assert preflight is not None
    assert preflight.rank == step.rank
    assert state.image_for(plan.gang(step.gang).ranks[preflight.rank].container.image) is not None
    return replace(state, containers=tuple(item for item in state.containers if item.name != step.target))


def _created(plan: Plan, step: Step, state: NodeFacts) -> Container:
    assert step.target not in {item.name for item in state.containers}, f"{step.id}: the name is taken"
    of = plan.gang(step.gang)
    rank = of.ranks[step.rank or 0]
    image = state.image_for(rank.container.image)
    assert image is not None, f"{step.id}: the image is not there"
    assert step.revision is not None
    marks = labels(plan.fleet, of, rank, step.revision, f"{plan.id}/{step.id}", image.id)
    made = container(of, rank.index, state="created", proved=False, revision=step.revision)
    return replace(
        made,
        id=f"{plan.id}/{step.id}",
        name=step.target,
        image_id=image.id,
        owner=owner_of(marks),
        created_at="2026-04",
    )


def _found(step: Step, state: NodeFacts) -> Container:
    wanted = step.container_id
    found = [item for item in state.containers if (item.id == wanted if wanted else item.name == step.target)]
    assert len(found) == 1, f"{step.id}: no such container"
    if found[0].preflight is not None and found[0].preflight.fleet == FLEET and step.op is Op.REMOVE:
        return found[0]
    assert found[0].owner is not None, f"{step.id} touches a foreign container"
    assert found[0].owner.fleet == FLEET, f"{step.id} touches another fleet"
    assert found[0].state in step.states, f"{step.id}: it is {found[0].state}"
    return found[0]


def _changed(world: World, step: Step, state: NodeFacts, found: Container) -> Container:
    if step.op is Op.STOP:
        return replace(found, state="exited", exit_code=0)
    if step.op is Op.START:
        _assert_alone(world, step, state)
        return replace(found, state="running", exit_code=None)
    if step.op is Op.UNPROVE:
        return replace(found, name=unproved_name(found.name))
    assert step.op is Op.CONFIRM
    return replace(found, name=proved_name(found.name))


def _assert_alone(world: World, step: Step, state: NodeFacts) -> None:
    """Two lanes run on one node only when both are wanted there and share."""
    sharing = {one.address for one in world.desired.gangs if one.shares and state.node in one.nodes}
    running = {
        item.owner.gang for item in state.containers if item.is_running and item.owner and item.owner.fleet == FLEET
    }
    others = running - {step.gang}
    assert not others or others | {step.gang} <= sharing, f"{step.id} starts beside {others}"
