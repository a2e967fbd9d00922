"""Who plays: nodes with their clusters and images, and the lanes that can be placed on them. Built once, used often."""

from dataclasses import dataclass, replace
from functools import lru_cache

from reconciler.core.canonical import fingerprint
from reconciler.core.desired import (
    ContainerSpec,
    Desired,
    Gang,
    HealthGate,
    NodeDeclaration,
    Preflight,
    RankSpec,
    Ready,
    SecretRef,
)
from reconciler.core.probes import Probe
from reconciler.testing.behaviours import GIB
from reconciler.testing.images import SimImage
from reconciler.testing.node import SimNodeConfig, sim_nodes
from reconciler.testing.simulation.engine import ANSWER, BIG_GIB, QUESTION, SMALL_GIB, engine, preflight

FLEET = "simulated"
PLATFORM = "linux/amd64"
HEAD_PORT, WORKER_PORT = 30000, 50052
TOKEN = SecretRef("env:FLEET_SIMULATED_TOKEN")
SECRET = "s3cr3t-of-the-simulation"  # noqa: S105 - a marker to be looked for, no password
MODEL_PATH = "/models/simulated"
SIZES = ((PLATFORM, 50 * 10**6),)

TRIED_OUT = frozenset("vwx")
"""Lanes with a preflight; the others have none."""

IMAGES = tuple(
    replace(SimImage.named(f"ghcr.io/simulated/engine-{letter}", engine), bytes_by_platform=SIZES, preflight=preflight)
    for letter in "abc"
)
"""What lanes are made of: a few images of one engine."""


@dataclass(frozen=True)
class Cast:
    """The machines. `clusters`: name and members; they overlap."""

    nodes: tuple[SimNodeConfig, ...]
    clusters: tuple[tuple[str, tuple[str, ...]], ...]

    def members(self, cluster: str) -> tuple[str, ...]:
        """The nodes of a cluster, in its order."""
        return dict(self.clusters)[cluster]


@dataclass(frozen=True)
class Part:
    """A lane on a cluster: which version of it, made of which image, in which mood its engine is."""

    lane: str
    cluster: str
    version: int = 1
    image: int = 0
    mood: str = "good"

    @property
    def address(self) -> str:
        """Of the gang."""
        return f"{self.cluster}/{self.lane}"

    @property
    def told(self) -> str:
        """For people."""
        engine_told = "" if self.mood == "good" else f", an engine that {self.mood}"
        return f"{self.address} (version {self.version}, image {'abc'[self.image]}{engine_told})"


@lru_cache(maxsize=64)
def cast_of(count: int) -> Cast:
    """So many nodes with both kinds of image stores, a cluster of all, of each half, and of each node."""
    nodes = sim_nodes(count)
    names = tuple(node.name for node in nodes)
    half = (count + 1) // 2
    clusters = {"all": names, "left": names[:half], "right": names[half:], "middle": names[1:3]}
    clusters |= {f"only-{name}": (name,) for name in names}
    return Cast(nodes, tuple((name, members) for name, members in clusters.items() if members))


@lru_cache(maxsize=8192)
def gang_of(cast: Cast, part: Part) -> Gang:
    """The gang of a lane, rendered."""
    addresses = {node.name: node.address for node in cast.nodes}
    names = cast.members(part.cluster)
    ranks = tuple(_rank(part, index, name, names, addresses) for index, name in enumerate(names))
    workers = tuple(range(1, len(ranks)))
    probe = Probe("chat", QUESTION, ANSWER[-6:-1], timeout_s=3.0)
    gate = HealthGate("127.0.0.1", HEAD_PORT, "/health", part.lane, (probe,), boot_s=20.0, stall_s=9.0, interval_s=2.0)
    order = ((workers, (0,))) if workers else ((0,),)
    url = f"http://{addresses[names[0]]}:{HEAD_PORT}/v1"
    check = Preflight(0, ("/engine",), ("check", part.mood), deadline_s=10.0) if part.lane in TRIED_OUT else None
    return Gang(part.lane, part.cluster, "custom", ranks, order, gate, url, preflight=check)


def _rank(part: Part, index: int, name: str, names: tuple[str, ...], addresses: dict[str, str]) -> RankSpec:
    peers = tuple(f"{addresses[other]}:{WORKER_PORT}" for other in names[1:])
    version = f"--version={part.version}"
    is_big = part.version % 2 == 1
    gib = str(BIG_GIB if is_big else SMALL_GIB)
    head = ("serve", part.mood, gib, str(HEAD_PORT), part.lane, *peers)
    command = head if index == 0 else ("work", part.mood, gib, str(WORKER_PORT))
    container = ContainerSpec(IMAGES[part.image].pin, command, ("/engine", version), env=(("TOKEN", TOKEN),), gpus=1)
    port = HEAD_PORT if index == 0 else WORKER_PORT
    ready = None if index == 0 else Ready(WORKER_PORT)
    role = "worker" if index else "head"
    memory = BIG_GIB * GIB if is_big else None
    return RankSpec(
        index, name, role, addresses[name], container, (port,), ready, memory, stop_grace_s=2.0, paths=(MODEL_PATH,)
    )


@lru_cache(maxsize=8192)
def desired_of(cast: Cast, parts: tuple[Part, ...]) -> Desired:
    """What a spec that places these lanes desires."""
    gangs = tuple(sorted((gang_of(cast, part) for part in parts), key=lambda gang: gang.address))
    nodes = tuple(NodeDeclaration(node.name, node.platform, node.gpus) for node in cast.nodes)
    return Desired(FLEET, fingerprint([repr(part) for part in parts]), nodes, gangs)
