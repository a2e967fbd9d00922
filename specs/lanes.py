"""What to serve: models, lanes, and where lanes are placed."""

import math
from typing import Annotated

from pydantic import AfterValidator, Discriminator, Field, JsonValue, Strict, Tag, model_validator

from specs.diagnostics import refuse
from specs.environment import Command, EnvValue, Words
from specs.fields import (
    ArgName,
    ContainerName,
    Device,
    EnvName,
    Line,
    Name,
    Port,
    Reason,
    Sha256,
    Text,
    Ulimit,
)
from specs.health import Health
from specs.images import ImageRef
from specs.inventory import NodeNames
from specs.paths import MountTarget, NodePath, RelativePath, normal_path
from specs.quantities import ByteSize, Duration, PositiveDuration
from specs.records import Record
from specs.requirements import ConfigKey, Requirements
from specs.roles import Order, Roles

Degree = Annotated[int, Field(ge=1, le=65536)]


class Model(Record):
    """The weights a lane serves, and the defaults of every lane that serves them."""

    repo: Line | None = Field(default=None, description="repository on the Hugging Face Hub: owner/name")
    revision: Line | None = Field(
        default=None,
        description="commit of the repository: compared with the snapshot that a node has, where that can be told; "
        "vllm and sglang are told it where the model has no `path`",
    )
    path: NodePath | None = Field(
        default=None,
        description="absolute path on the node of the model's folder or file; may hold {paths.NAME}; the container "
        "sees it through the lane's mounts",
    )
    verify: dict[RelativePath, Sha256] = Field(
        default_factory=dict,
        description="checksums, sha256:<64 hex>, by file below the model's folder: of files up to 16 MiB compared in "
        "each plan, of all by `fleet models verify` and after a copy",
    )
    draft: Name | None = Field(
        default=None, description="the model that drafts for it in speculative decoding, a key of `models`"
    )
    sync: bool = Field(
        default=False,
        description="whether a plan may copy it to a node that lacks it, from another node of the cluster; "
        "`fleet models sync` always may",
    )
    args: dict[ArgName, JsonValue] = Field(
        default_factory=dict, description="default engine arguments of the lanes that serve this model"
    )
    served_name: Line | None = Field(default=None, description="the model's name in the HTTP API")
    config: dict[ConfigKey, JsonValue] = Field(
        default_factory=dict,
        description="what its config.json says, or the part that matters: num_attention_heads, num_key_value_heads, "
        "...; lanes that it cannot be split for are refused",
    )
    requires: Requirements = Field(default=(), description="settings that every lane of this model must have")

    @model_validator(mode="after")
    def _says_where(self) -> "Model":
        if self.repo is None and self.path is None:
            raise refuse("a model needs `repo` or `path`", "Nothing says where its files are.")
        return self


class Parallel(Record):
    """How a model is split: how many nodes a lane takes, and the flags of vllm and sglang; others get it by `argv`."""

    tensor: Degree = Field(default=1, description="tensor parallel size")
    pipeline: Degree = Field(default=1, description="pipeline parallel size")
    data: Degree = Field(default=1, description="data parallel size")
    expert: Degree = Field(
        default=1, description="expert parallel size; takes no further GPUs: in vllm 1 or tensor x data"
    )


class Mount(Record):
    """A folder or file of the node that the container sees."""

    source: NodePath = Field(description="absolute path on the node; may hold {paths.NAME}")
    target: MountTarget = Field(description="absolute path in the container")
    read_only: bool = Field(default=True, description="whether the container cannot write to it")


def _apart(mounts: tuple[Mount, ...]) -> tuple[Mount, ...]:
    first: dict[str, int] = {}
    for index, mount in enumerate(mounts):
        seen = first.setdefault(normal_path(mount.target), index)
        if seen != index:
            raise refuse(
                f"'{mount.target[:80]}' is mounted twice",
                f"mounts[{seen}] has the target '{mounts[seen].target[:80]}': one would hide the other.",
                "remove one, or give it another target",
                below=(index, "target"),
            )
    return mounts


class Preflight(Record):
    """What tells from the image alone, before anything stops, whether the lane can boot."""

    command: Command | None = Field(
        default=None,
        description="what to run, one word an item, with placeholders as in `argv`: it exits with 0 when all is well; "
        "default: the engine's",
    )
    deadline: PositiveDuration | None = Field(
        default=None, description="time to its end, in seconds (2m); default: the engine's, or two minutes"
    )


def _kind_of_preflight(value: object) -> str | None:
    if isinstance(value, bool):
        return "(switch)"
    return "(command)" if isinstance(value, dict | Preflight) else None


OwnPreflight = Annotated[
    Annotated[bool, Tag("(switch)")] | Annotated[Preflight, Tag("(command)")],
    Discriminator(
        _kind_of_preflight,
        custom_error_type="wanted",
        custom_error_message="wants {what}",
        custom_error_context={"what": "false, or {command: [...], deadline: 2m}"},
    ),
]


class Parked(Record):
    """Why a lane is kept but never placed."""

    reason: Reason = Field(description="why the lane is parked")
    reopen_when: Line | None = Field(default=None, description="what must happen before it can be placed again")


class Lane(Record):
    """A named, complete recipe for serving one model."""

    engine: Line = Field(
        description="what makes the command line: vllm, sglang, llamacpp, or custom (runs any program by its `argv`)"
    )
    image: ImageRef = Field(
        description="the image, pinned: repo@sha256:<digest>, or sha256:<image id> of a local build"
    )
    model: Name | None = Field(default=None, description="the model to serve, a key of `models`")
    nodes: Degree | None = Field(
        default=None, description="number of nodes, one rank each; default: tensor x pipeline x data, one GPU a node"
    )
    parallel: Parallel = Field(
        default=Parallel(), description="how the model is split: sets `nodes`, and flags of vllm and sglang"
    )
    args: dict[ArgName, JsonValue] = Field(
        default_factory=dict,
        description="engine arguments without dashes, over the model's; null takes one of the model's away; "
        "{draft} in a text is the path of the model's `draft`",
    )
    argv: Words = Field(default=(), description="command of a custom engine, one word an item; `args` follow it")
    roles: Roles = Field(default=Roles(), description="what head and workers of a custom engine do differently")
    order: Order = Field(
        default=(),
        description="which ranks of a custom engine boot first, [worker, head] or [head, worker]; the next start when "
        "the `port` of those before listens; default: all at once",
    )
    entrypoint: Annotated[tuple[Text, ...], Strict(strict=False), Field(min_length=1)] | None = Field(
        default=None, description="what to run instead of the image's entrypoint, one word an item"
    )
    env: dict[EnvName, EnvValue] = Field(
        default_factory=dict, description="environment: text, kept as written, or {secret: env:NAME}"
    )
    mounts: Annotated[tuple[Mount, ...], Strict(strict=False), AfterValidator(_apart)] = Field(
        default=(), description="folders and files of the node that the container sees"
    )
    devices: Annotated[tuple[Device, ...], Strict(strict=False)] = Field(
        default=(), description="devices of the node, e.g. /dev/infiniband"
    )
    rdma: bool = Field(
        default=False, description="whether ranks need RDMA: each node's interface of the cluster then names its `hca`"
    )
    shm_size: ByteSize | None = Field(default=None, description="size of /dev/shm in bytes (64GiB)")
    ulimits: dict[Ulimit, Annotated[int, Field(ge=-1, le=2**63 - 1)]] = Field(
        default_factory=dict, description="limits by name, soft and hard alike, e.g. memlock: -1 (no limit)"
    )
    memory: ByteSize | None = Field(default=None, description="memory that each rank needs, in bytes (96GiB)")
    gpus: Annotated[int, Field(ge=0, le=1024)] | None = Field(
        default=None, description="GPUs of each rank; default: all of the node"
    )
    shares: bool = Field(default=False, description="whether other lanes that share may run on the same nodes")
    ports: dict[Name, Port] = Field(
        default_factory=dict, description="further TCP ports of the engine by name, e.g. rpc: 50052"
    )
    health: Health = Field(default=Health(), description="how a boot is judged and what proves that the lane serves")
    preflight: OwnPreflight = Field(
        default=True,
        description="tried in a container without GPUs before anything stops: false for not at all, or a command and a "
        "deadline of your own; default: the engine's, where it has one",
    )
    stop_grace: Duration = Field(default=30.0, description="time to stop before the engine is killed, in seconds (30s)")
    served_name: Line | None = Field(
        default=None, description="the model's name in the HTTP API; wins over the model's"
    )
    parked: Parked | None = Field(default=None, description="set: the lane is kept and checked, but never placed")

    @property
    def gpu_count(self) -> int:
        """How many GPUs all its ranks take: tensor x pipeline x data."""
        # SGLang's data parallel attention takes its groups out of the tensor parallel ones.
        data = 1 if self.args.get("enable-dp-attention") else self.parallel.data
        return math.prod((self.parallel.tensor, self.parallel.pipeline, data))

    @property
    def node_count(self) -> int:
        """How many nodes the lane takes: `nodes`, else one for each of its GPUs."""
        return self.nodes or self.gpu_count


class Placement(Record):
    """This lane on this cluster: the desired state."""

    lane: Name = Field(description="the lane, a key of `lanes`")
    cluster: Name = Field(description="the cluster, a key of `clusters`")
    nodes: NodeNames | None = Field(
        default=None, description="the nodes of the cluster to take, rank 0 first; default: the first ones"
    )
    may_stop: Annotated[tuple[ContainerName, ...], Strict(strict=False)] = Field(
        default=(),
        description="running containers of these names that fleet did not make, and that it may stop to boot the "
        "lane; they are kept, and start again when the lane fails",
    )
