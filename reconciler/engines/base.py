"""What an engine is: pure functions from a lane on a cluster to the containers of its ranks.

Adding an engine: write a module with an `ENGINE` value like those beside this file, and list it in
`reconciler/engines/__init__.py`.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Literal

import specs
from reconciler.core.desired import ContainerSpec, Endpoint, EnvValue, Mount, Preflight, Ready, SecretRef
from reconciler.engines.pins import pin_of
from specs.paths import normal_path

PhaseName = Literal["image", "weights", "load", "compile", "capture", "api"]
"""The phases of a boot that engines' logs tell of, in order: the image starts, weights are found and read, the model is
set up, kernels are compiled or tuned, graphs are captured, the API opens."""


@dataclass(frozen=True)
class Seat:
    """One rank's place: its number, its node, and the address other ranks reach it by (the cluster's fabric)."""

    index: int
    name: str
    node: specs.Node
    address: str
    interface: specs.Interface | None


@dataclass(frozen=True)
class Job:
    """One lane on one cluster, with everything an engine may look at."""

    lane_name: str
    lane: specs.Lane
    cluster: specs.Cluster
    model: specs.Model | None
    seats: tuple[Seat, ...]
    draft: specs.Model | None = None

    @property
    def head(self) -> Seat:
        """Rank 0."""
        return self.seats[0]

    @property
    def served_name(self) -> str:
        """The model's name in the HTTP API: the lane's word, else the model's, else the lane's own name."""
        return self.lane.served_name or (self.model.served_name if self.model else None) or self.lane_name

    @property
    def args(self) -> Mapping[str, object]:
        """The model's defaults under the lane's own; a null takes a default away."""
        defaults = self.model.args if self.model else {}
        return {key: value for key, value in {**defaults, **self.lane.args}.items() if value is not None}

    @property
    def revision_words(self) -> tuple[str, ...]:
        """`--revision` for a model that the engine fetches from the hub by itself; a path on the node needs none."""
        model = self.model
        return ("--revision", model.revision) if model and model.path is None and model.revision else ()

    @property
    def is_spread(self) -> bool:
        """Whether the lane runs on more than one node."""
        return len(self.seats) > 1

    def model_path(self, seat: Seat) -> str:
        """The model's path as the rank sees it: the node's path through the lane's mounts; empty without a model."""
        return self._path_of(self.model, seat)

    def draft_path(self, seat: Seat) -> str:
        """The same of the model that drafts for it; empty without one."""
        return self._path_of(self.draft, seat)

    def _path_of(self, model: specs.Model | None, seat: Seat) -> str:
        if model is None or model.path is None:
            return (model.repo or "") if model else ""
        return self._through_mounts(seat, PurePosixPath(seat.node.expand(model.path)))

    def entrypoint(self, seat: Seat) -> tuple[str, ...]:
        """The lane's entrypoint with the node's paths in it; empty where the lane has none."""
        return tuple(map(seat.node.expand, self.lane.entrypoint or ()))

    def node_paths(self, seat: Seat) -> tuple[str, ...]:
        """What has to be there on the node: all that is mounted, and the model where a mount shows it."""
        mounts = {normal_path(seat.node.expand(item.source)) for item in self.lane.mounts}
        model = seat.node.expand(self.model.path) if self.model and self.model.path else None
        if model is not None and any(PurePosixPath(model).is_relative_to(source) for source in mounts):
            mounts.add(model)
        return tuple(sorted(mounts))

    def _through_mounts(self, seat: Seat, path: PurePosixPath) -> str:
        """Where the container sees a path of the node: by the deepest mount above it, else at the same place."""
        mounts = [(PurePosixPath(normal_path(seat.node.expand(item.source))), item.target) for item in self.lane.mounts]
        above = [(source, target) for source, target in mounts if path.is_relative_to(source)]
        if not above:
            return str(path)
        source, target = max(above, key=lambda pair: len(pair[0].parts))
        return str(PurePosixPath(target) / path.relative_to(source))


@dataclass(frozen=True)
class Part:
    """What is the engine's own in a rank: role, argv, ports it listens on, and when the next wave may start.

    `program` is run as it is, or by the lane's `entrypoint` where it has one; with `has_entrypoint` the engine has
    looked at the lane's entrypoint itself. `stop_grace_s` None: as the lane says.
    `devices`, `shm_bytes` and `ulimits` are what the engine needs where the lane says nothing of them.
    """

    role: str
    program: tuple[str, ...]
    command: tuple[str, ...]
    ports: tuple[int, ...] = ()
    ready: Ready | None = None
    env: tuple[tuple[str, EnvValue], ...] = ()
    stop_grace_s: float | None = None
    devices: tuple[str, ...] = ()
    shm_bytes: int | None = None
    ulimits: tuple[tuple[str, int], ...] = ()
    has_entrypoint: bool = False


@dataclass(frozen=True)
class Fault:
    """Something in a lane that this engine cannot work with. `loc` is relative to the lane, for example ("argv", 2)."""

    loc: tuple[str | int, ...]
    summary: str
    detail: str = ""
    hint: str = ""


@dataclass(frozen=True)
class Phase:
    """A part of a boot, and a regular expression found in the log line with which it begins."""

    name: PhaseName
    pattern: str


def _no_preflight(_: Job) -> None:
    return None


def _no_endpoints(_: Job, __: Seat) -> tuple[Endpoint, ...]:
    return ()


@dataclass(frozen=True)
class Engine:
    """An engine by name.

    `faults` looks at a lane and its model alone (placed or not). `phases` are in the order of a boot; a line of `fatal`
    (regular expressions) means that the boot cannot succeed any more. `endpoints` are the pages of a rank that answer
    200 when it is up, beside the head's own. `owned_env`: variables that a lane may not set, with what decides them.
    `takes_commands`: whether a lane writes its command itself, by `argv`, `roles` and `order`.
    """

    name: str
    summary: str
    faults: Callable[[specs.Lane, specs.Model | None], Iterator[Fault]]
    part: Callable[[Job, Seat], Part]
    boot_order: Callable[[Job], tuple[tuple[int, ...], ...]]
    phases: tuple[Phase, ...] = ()
    fatal: tuple[str, ...] = ()
    preflight: Callable[[Job], Preflight | None] = _no_preflight
    endpoints: Callable[[Job, Seat], tuple[Endpoint, ...]] = _no_endpoints
    owned_env: Mapping[str, str] = field(default_factory=dict)
    takes_commands: bool = False


def container(job: Job, seat: Seat, part: Part) -> ContainerSpec:
    """The whole container of one rank: the engine's part and what the lane, the node and the cluster say."""
    lane = job.lane
    wrapper = () if part.has_entrypoint else job.entrypoint(seat)
    wrapped = wrapper and part.program
    return ContainerSpec(
        image=pin_of(lane.image),
        entrypoint=wrapper or part.program or None,
        command=(*part.program, *part.command) if wrapped else part.command,
        env=_env(lane, part),
        mounts=tuple(_mount(seat, item) for item in lane.mounts),
        devices=tuple(dict.fromkeys((*map(_shortest, lane.devices), *part.devices))),
        shm_bytes=(part.shm_bytes if lane.shm_size is None else lane.shm_size) or None,
        ulimits=tuple(sorted({**dict(part.ulimits), **lane.ulimits}.items())),
        gpus=seat.node.gpus if lane.gpus is None else lane.gpus,
    )


def _mount(seat: Seat, mount: specs.Mount) -> Mount:
    """In the form in which Docker says it back: any other would differ from what is found, for ever."""
    return Mount(normal_path(seat.node.expand(mount.source)), normal_path(mount.target), mount.read_only)


def _shortest(device: str) -> str:
    """`/dev/x:/dev/x:rwm` is `/dev/x`, as a container's devices are read."""
    short = device.removesuffix(":rwm")
    outside, _, inside = short.partition(":")
    return outside if inside == outside else short


def _env(lane: specs.Lane, part: Part) -> tuple[tuple[str, EnvValue], ...]:
    """The lane's own variables; those of the engine and the fabric win (the spec refuses the ones that clash)."""
    own = {key: env_value(value) for key, value in lane.env.items()}
    return tuple(sorted({**own, **dict(part.env)}.items()))


def env_value(value: str | specs.Secret) -> EnvValue:
    """A variable's value as the spec has it, for a container."""
    return SecretRef(value.secret) if isinstance(value, specs.Secret) else value


def fabric_env(job: Job, seat: Seat) -> tuple[tuple[str, str], ...]:
    """Variables that tell NCCL and Gloo which wires to use, per node: names of interfaces differ between machines.

    Names after the NCCL and PyTorch documentation. Empty for one rank, or a cluster without a fabric interface.
    """
    if len(job.seats) == 1 or seat.interface is None:
        return ()
    env = {"NCCL_SOCKET_IFNAME": seat.interface.name, "GLOO_SOCKET_IFNAME": seat.interface.name}
    if seat.interface.hca is not None:
        env["NCCL_IB_HCA"] = seat.interface.hca
    if job.cluster.nccl.gid_index is not None:
        env["NCCL_IB_GID_INDEX"] = str(job.cluster.nccl.gid_index)
    return tuple(sorted(env.items()))
