"""Valid values of the core in few words. Every builder has a default for what a test does not care about."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from reconciler.core.desired import ContainerSpec, Desired, Gang, HealthGate, ImagePin, NodeDeclaration, RankSpec
from reconciler.core.identity import container_name, labels, owner_of, unproved_name
from reconciler.core.lock import LockedImage, LockedLayer, LockedPlatform
from reconciler.core.observed import (
    Container,
    Gpu,
    LocalImage,
    NodeFacts,
    Observed,
    Source,
    SourceImage,
    Unknown,
    UnknownKind,
)
from reconciler.core.plan import Op, Plan, Step
from reconciler.core.planner import PlanOptions, make_plan

FLEET = "lab"
PLATFORM = "linux/arm64"
GIB = 2**30


def digest(letter: str = "a") -> str:
    return f"sha256:{letter * 64}"


def pin(letter: str = "a", name: str = "ghcr.io/owner/engine") -> ImagePin:
    registry, _, repository = name.partition("/")
    return ImagePin(f"{name}@{digest(letter)}", digest(letter), "digest", registry, repository)


def layer(name: str, size_bytes: int = GIB, unpacked_bytes: int | None = None) -> LockedLayer:
    return LockedLayer(f"sha256:blob-{name}", size_bytes, f"sha256:diff-{name}", unpacked_bytes)


def platform_of(*layers: LockedLayer, config: str = "sha256:config", platform: str = PLATFORM) -> LockedPlatform:
    """An image of these layers, for one platform; its config has no bytes."""
    return LockedPlatform(platform, f"sha256:manifest-{config}", 1000, config, 0, layers)


def source(letter: str = "a", *layers: LockedLayer, origin: str = "vault") -> SourceImage:
    """What the sources say of the pin of this letter when they know its layers."""
    locked = platform_of(*layers, config=f"sha256:config-{letter}")
    image = LockedImage("ghcr.io/owner/engine", digest(letter), "digest", (locked,))
    return SourceImage(digest(letter), ((PLATFORM, locked.compressed_bytes),), image, origin)


def holding(*layers: LockedLayer, name: str = "other", **others: Any) -> LocalImage:
    """A local image of these layers."""
    ids = tuple(item.diff_id for item in layers)
    return replace(LocalImage(f"sha256:{name}", (f"sha256:digest-{name}",), diff_ids=ids), **others)


def spec(*words: str, image: ImagePin | None = None, **others: Any) -> ContainerSpec:
    return ContainerSpec(image=image or pin(), command=words or ("serve",), **others)


def rank(index: int = 0, node: str = "n1", container: ContainerSpec | None = None, **others: Any) -> RankSpec:
    role = "head" if index == 0 else "worker"
    defaults: dict[str, Any] = {"ports": (30000,) if index == 0 else ()}
    return RankSpec(index, node, role, f"{node}.fabric", container or spec(), **{**defaults, **others})


def gang(
    lane: str = "a",
    nodes: Iterable[str] = ("n1",),
    *words: str,
    cluster: str = "c",
    image: ImagePin | None = None,
    boot_order: tuple[tuple[int, ...], ...] | None = None,
    shares: bool = False,
    gate: HealthGate | None = None,
    container: Mapping[str, Any] | None = None,
    **of_rank: Any,
) -> Gang:
    """A gang with one rank a node. `container`: more fields of its containers; further keywords: of each rank."""
    made = spec(*words, image=image, **(container or {}))
    ranks = tuple(rank(index, node, made, **of_rank) for index, node in enumerate(nodes))
    order = boot_order or (tuple(range(len(ranks))),)
    gate = gate or HealthGate("127.0.0.1", 30000, served_name=lane)
    return Gang(lane, cluster, "custom", ranks, order, gate, f"http://{ranks[0].node}:30000/v1", shares)


def local_id(node: str, image: ImagePin) -> str:
    """The id that this node's store gives to the image: never the same on two nodes."""
    return f"sha256:{node}-{image.digest[7:19]}"


def container(
    of: Gang,
    index: int = 0,
    *,
    state: str = "running",
    proved: bool = True,
    revision: int = 1,
    fleet: str = FLEET,
    node: str | None = None,
    **changed: Any,
) -> Container:
    """The container that fits this rank of the gang. `changed`: fields that somebody made different."""
    one = of.ranks[index]
    where, wanted = node or one.node, one.container
    name = container_name(of.lane, index, revision)
    image_id = local_id(where, wanted.image)
    marks = labels(fleet, of, one, revision, f"op-{revision}", image_id)
    ended = state in {"exited", "dead"}
    made = Container(
        id=f"{where}:{fleet}:{of.address}:{name}{'' if proved else ':unproved'}",
        name=name if proved else unproved_name(name),
        state=state,
        image_id=image_id,
        image=wanted.image.reference,
        owner=owner_of(marks),
        entrypoint=wanted.entrypoint,
        command=wanted.command,
        env=wanted.env,
        mounts=wanted.mounts,
        devices=wanted.devices,
        shm_bytes=wanted.shm_bytes,
        ulimits=wanted.ulimits,
        gpus=wanted.gpus,
        exit_code=1 if ended else None,
        created_at="2026-03-01T10:00:00.5Z",
        started_at="" if state == "created" else "2026-03-01T10:00:01.5Z",
        finished_at="2026-03-01T11:00:00.5Z" if ended else "",
    )
    return replace(made, **changed)


def containers(of: Gang, **how: Any) -> dict[str, Container]:
    """The container of every rank, by node."""
    return {one.node: container(of, one.index, **how) for one in of.ranks}


def foreign(name: str = "open-webui", state: str = "running", **others: Any) -> Container:
    """A container that no fleet made."""
    return Container(f"id-{name}", name, state, "sha256:foreign", image=f"ghcr.io/{name}:main", **others)


def facts(node: str = "n1", *found: Container, images: Iterable[ImagePin] = (pin(),), **others: Any) -> NodeFacts:
    """A node with these containers; by default it has the default image, and room for everything."""
    local = tuple(LocalImage(local_id(node, item), (item.digest,)) for item in images)
    made = NodeFacts(
        node=node,
        platform=PLATFORM,
        boot_id=f"boot-{node}",
        store="containerd",
        docker_version="29.0.0",
        docker_root="/var/lib/docker",
        disk_free_bytes=500 * GIB,
        memory_available_bytes=120 * GIB,
        memory_total_bytes=128 * GIB,
        containers=found,
        images=local,
        gpus=(Gpu("NVIDIA GB10"),),
    )
    return replace(made, **others)


def unknown(node: str = "n1", kind: UnknownKind = UnknownKind.TIMEOUT, reason: str = "no answer in 10 s") -> Unknown:
    return Unknown(node, kind, reason, f"ping {node}")


def observed(*states: NodeFacts | Unknown, sources: Iterable[Source] = ()) -> Observed:
    return Observed({state.node: state for state in states}, {item.digest: item for item in sources})


def desired(*gangs: Gang, nodes: Iterable[str] = ()) -> Desired:
    """A fleet that wants these gangs, with the nodes they take and `nodes`."""
    names = sorted({*nodes, *(node for one in gangs for node in one.nodes)})
    return Desired(FLEET, "sha256:spec", tuple(NodeDeclaration(name, PLATFORM) for name in names), gangs)


def world(*gangs: Gang, nodes: Iterable[str] = (), **how: Any) -> Observed:
    """Nodes on which these gangs run as wanted (or as `how` says), and further empty nodes."""
    found: dict[str, list[Container]] = {node: [] for node in nodes}
    for one in gangs:
        for node, item in containers(one, **how).items():
            found.setdefault(node, []).append(item)
    return observed(*(facts(node, *items) for node, items in sorted(found.items())))


def plan(wanted: Desired, seen: Observed, **options: Any) -> Plan:
    return make_plan(wanted, seen, PlanOptions(tool="fleet 0", **options))


def ids(steps: Iterable[Step]) -> list[str]:
    return [step.id for step in steps]


def ways_back(made: Plan) -> tuple[Step, ...]:
    """The steps of all rollbacks."""
    return tuple(step for way in made.rollbacks for step in way.steps)


def step(made: Plan, step_id: str) -> Step:
    return next(item for item in (*made.steps, *ways_back(made)) if item.id == step_id)


def before(made: Plan, step_id: str) -> set[str]:
    """Every step that has to be done before this one, however indirectly."""
    by_id = {item.id: item for item in made.steps}
    seen: set[str] = set()
    todo = list(by_id[step_id].requires)
    while todo:
        current = todo.pop()
        if current not in seen:
            seen.add(current)
            todo += by_id[current].requires
    return seen


def of_op(made: Plan, op: Op) -> list[Step]:
    return [item for item in made.steps if item.op is op]
