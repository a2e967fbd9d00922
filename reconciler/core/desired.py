"""What the spec asks for, rendered: every rank of every gang as the container that has to run.

Pure values. Engines (`reconciler.engines`) make them from the spec; the planner compares them with what is observed.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from reconciler.core.canonical import fingerprint, plain
from reconciler.core.models import ModelWant, Shelf
from reconciler.core.probes import Performance, Probe


@dataclass(frozen=True)
class ImagePin:
    """An image by content: `repository@sha256:...`, or the bare id of a local build.

    `digest` is the manifest or index digest for kind "digest", and the local image id for kind "id". `configs`: the
    config digests of its platforms, where they are known (`core/lock.py`): the classic store's ids of the same content.
    """

    reference: str
    digest: str
    kind: Literal["digest", "id"]
    registry: str | None = None
    repository: str | None = None
    configs: tuple[str, ...] = ()

    @property
    def short(self) -> str:
        """For people: the name and twelve digits."""
        name = f"{self.registry}/{self.repository}@" if self.repository else ""
        return f"{name}{self.digest[:19]}"


@dataclass(frozen=True)
class SecretRef:
    """A secret by reference ("env:NAME", "file:/path"). The value is resolved at the moment of creation only."""

    secret: str


EnvValue = str | SecretRef


@dataclass(frozen=True)
class Mount:
    """A bind mount: an absolute path of the node, seen in the container at `target`."""

    source: str
    target: str
    read_only: bool = True


@dataclass(frozen=True)
class ContainerSpec:
    """The container of one rank, with all that matters for what it does.

    Units: `shm_bytes` in bytes. `entrypoint` None keeps the image's own. Always: host network, no restart policy.
    """

    image: ImagePin
    command: tuple[str, ...] = ()
    entrypoint: tuple[str, ...] | None = None
    env: tuple[tuple[str, EnvValue], ...] = ()
    mounts: tuple[Mount, ...] = ()
    devices: tuple[str, ...] = ()
    shm_bytes: int | None = None
    ulimits: tuple[tuple[str, int], ...] = ()
    gpus: int = 0


@dataclass(frozen=True)
class Ready:
    """When a rank of an earlier wave lets the next one start: its port accepts a connection on its node."""

    port: int


@dataclass(frozen=True)
class Wire:
    """What the spec says of a rank's way to the other ranks: an interface with its address, RDMA devices, a GID index.

    `hcas` as NCCL_IB_HCA names them, for example "mlx5_0" or "mlx5_0:1".
    """

    interface: str
    address: str
    hcas: tuple[str, ...] = ()
    gid_index: int | None = None


@dataclass(frozen=True)
class Silence:
    """Findings that a person lets pass: of checks and addresses of these patterns, through the day `until` (ISO)."""

    check: str
    address: str
    reason: str
    until: str


@dataclass(frozen=True)
class Ignore:
    """Drift that a person lets pass: findings of this class ("*": of any), at addresses and of fields of these
    patterns, through the day `until` (ISO)."""

    kind: str
    address: str
    field: str
    reason: str
    until: str


@dataclass(frozen=True)
class Endpoint:
    """A page of a rank that answers 200 when the rank is up. `address` as seen from its own node."""

    port: int
    path: str
    address: str = "127.0.0.1"


@dataclass(frozen=True)
class RankSpec:
    """One rank: which node, which role, which container, which ports it listens on.

    `paths` have to be there on the node before it boots: what is mounted, and the model. `endpoints`: pages that answer
    when it is up, beside the head's own (`HealthGate.path`). `models`: what it serves, and what drafts for it.
    """

    index: int
    node: str
    role: str
    address: str
    container: ContainerSpec
    ports: tuple[int, ...] = ()
    ready: Ready | None = None
    memory_bytes: int | None = None
    stop_grace_s: float = 30.0
    paths: tuple[str, ...] = ()
    endpoints: tuple[Endpoint, ...] = ()
    models: tuple[ModelWant, ...] = ()
    wire: Wire | None = None

    @cached_property
    def fingerprint(self) -> str:
        """Identity of what must run. Ports and addresses count through the argv that carries them.

        Of the image only the digest counts: the same content under another name is no reason to stop a lane.
        """
        return fingerprint({**plain(self.container), "image": self.container.image.digest})


@dataclass(frozen=True)
class HealthGate:
    """What proves a gang: the head answers on `port`, lists `served_name`, and every probe's answer is right.

    `address` is the head's as seen from its own node. `boot_s` bounds the whole boot; `stall_s` bounds the time
    without any sign of progress. `performance` unset: nothing is measured.
    """

    address: str
    port: int
    path: str = "/health"
    served_name: str | None = None
    probes: tuple[Probe, ...] = ()
    boot_s: float = 2400.0
    stall_s: float = 600.0
    interval_s: float = 2.0
    performance: Performance | None = None


@dataclass(frozen=True)
class Preflight:
    """A command that tells from the image alone whether a rank's command line can work: exit 0 when it can.

    It runs in a container of its own, without GPUs, on one node of the gang. `deadline_s` in seconds.
    """

    rank: int
    entrypoint: tuple[str, ...]
    command: tuple[str, ...] = ()
    deadline_s: float = 120.0


@dataclass(frozen=True)
class Gang:
    """All ranks of one lane on one cluster: changed together or not at all.

    `boot_order` lists waves of rank indexes; a wave starts when every rank of the one before is ready. `url` is where
    the lane answers its users (OpenAI-compatible base). `may_stop`: foreign containers that may go to make room, by
    name. `preflight` is tried before anything stops.
    `shelves`: where the other nodes of the cluster would have its models.
    """

    lane: str
    cluster: str
    engine: str
    ranks: tuple[RankSpec, ...]
    boot_order: tuple[tuple[int, ...], ...]
    gate: HealthGate
    url: str
    shares: bool = False
    may_stop: tuple[str, ...] = ()
    preflight: Preflight | None = None
    shelves: tuple[Shelf, ...] = ()

    @property
    def address(self) -> str:
        """The name of the placement in plans, events and reports."""
        return f"{self.cluster}/{self.lane}"

    @property
    def nodes(self) -> tuple[str, ...]:
        """The nodes it takes, rank 0 first."""
        return tuple(rank.node for rank in self.ranks)

    def without_models(self) -> "Gang":
        """The same gang with no word of its models."""
        return replace(self, ranks=tuple(replace(rank, models=()) for rank in self.ranks), shelves=())

    @cached_property
    def fingerprint(self) -> str:
        """Identity of this version of the gang: what its ranks run, where, in which order, and how it is judged."""
        ranks = [(rank.node, rank.fingerprint) for rank in self.ranks]
        return fingerprint({"ranks": ranks, "order": self.boot_order, "gate": plain(self.gate)})


@dataclass(frozen=True)
class NodeDeclaration:
    """What the spec says a node is. `platform` as in image manifests, for example "linux/arm64"."""

    name: str
    platform: str
    gpus: int = 0
    memory_bytes: int | None = None
    wires: tuple[Wire, ...] = ()


@dataclass(frozen=True)
class TransferSettings:
    """How fast images move, for choices and estimates, and whether a node may pass them on to its neighbours.

    Bytes a second: what the controller can send, and what a node unpacks (counted uncompressed).
    """

    uplink_bytes_s: int = 110 * 2**20
    unpack_bytes_s: int = 170 * 2**20
    relay: bool = True


@dataclass(frozen=True)
class Desired:
    """The whole wanted state of one fleet. `taken_down`: gangs that the spec places and a person wants gone.

    `retain`: how many earlier generations of each gang stay on its nodes, to go back to.
    """

    fleet: str
    spec_fingerprint: str
    nodes: tuple[NodeDeclaration, ...]
    gangs: tuple[Gang, ...]
    taken_down: tuple[str, ...] = ()
    transfer: TransferSettings = TransferSettings()
    retain: int = 0
    silences: tuple[Silence, ...] = ()
    ignores: tuple[Ignore, ...] = ()

    @cached_property
    def declarations(self) -> Mapping[str, NodeDeclaration]:
        """What the spec says of each node, by name."""
        return {node.name: node for node in self.nodes}

    def without(self, lanes: frozenset[str]) -> "Desired":
        """The same fleet with these lanes placed nowhere."""
        kept = tuple(gang for gang in self.gangs if gang.lane not in lanes)
        down = tuple(gang.address for gang in self.gangs if gang.lane in lanes)
        return replace(self, gangs=kept, taken_down=self.taken_down + down)

    def wanting(self, gang: Gang) -> "Desired":
        """The same fleet with this version of the gang of its address."""
        return replace(self, gangs=tuple(gang if item.address == gang.address else item for item in self.gangs))

    def without_models(self) -> "Desired":
        """The same fleet with no word of models: for what is about images alone, and no storage may hold up."""
        return replace(self, gangs=tuple(gang.without_models() for gang in self.gangs))
