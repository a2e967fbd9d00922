"""What the nodes say. A node is known (`NodeFacts`) or `Unknown` with a reason: never silently empty.

Everything here is read, nothing is concluded; conclusions are the planner's.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from reconciler.core.canonical import fingerprint
from reconciler.core.desired import EnvValue, ImagePin, Mount
from reconciler.core.host import NOTHING_KNOWN, Host
from reconciler.core.image_defaults import ImageDefaults, Settings
from reconciler.core.lock import LockedImage
from reconciler.core.models import ModelFacts, ModelPlace
from reconciler.core.secret_marks import NO_MARKS, NOTHING_SEEN, SecretMarks, SeenSecrets
from reconciler.core.unknown import Unknown as Unknown  # noqa: PLC0414 - a part of what is observed
from reconciler.core.unknown import UnknownKind as UnknownKind  # noqa: PLC0414

RUNNING_STATES = frozenset({"running", "paused", "restarting"})
"""States in which a container holds memory, GPUs and ports (or will again without anybody's doing)."""


@dataclass(frozen=True)
class Owner:
    """What the labels of a container of ours say. `container_text`, `recipe`: see `core/previous.py`."""

    fleet: str
    lane: str
    cluster: str
    rank: int
    size: int
    fingerprint: str
    revision: int
    operation: str
    pin: str
    image_id: str
    ports: tuple[int, ...] = ()
    stop_grace_s: float = 30.0
    declared_env: tuple[str, ...] = ()
    secrets: SecretMarks = NO_MARKS
    container_text: str = ""
    recipe: str = ""

    @property
    def gang(self) -> str:
        """The address of the placement it was made for."""
        return f"{self.cluster}/{self.lane}"

    @property
    def digest(self) -> str:
        """The digest its image was pinned by."""
        return self.pin.rpartition("@")[2]


@dataclass(frozen=True)
class PreflightMark:
    """What the labels of a container say that only tries something out (`core/preflight.py`): it is no rank."""

    fleet: str
    gang: str
    operation: str


@dataclass(frozen=True)
class Container:
    """One container of a node, in any state, ours or foreign.

    `env` of ours has secrets as references (read from the rank's own spec label), never as values; `env` of a foreign
    container is not kept at all. Times are Docker's own text (RFC 3339), empty when never.

    `claims`: whose its labels say it is where its name says otherwise, so that it is nobody's: a copy, or renamed by
    hand. `unasked`: of one of ours, what its HostConfig sets and ours never do, as `docker update` does;
    `settings`: what its Config says beside words and variables, its image's own with it. `live_secrets`: marks of the
    values that its secrets have in it now, where somebody who has the key has looked.
    """

    id: str
    name: str
    state: str
    image_id: str
    owner: Owner | None = None
    preflight: PreflightMark | None = None
    entrypoint: tuple[str, ...] | None = None
    command: tuple[str, ...] = ()
    env: tuple[tuple[str, EnvValue], ...] = ()
    mounts: tuple[Mount, ...] = ()
    devices: tuple[str, ...] = ()
    shm_bytes: int | None = None
    ulimits: tuple[tuple[str, int], ...] = ()
    gpus: int = 0
    network_mode: str = "host"
    restart_policy: str = "no"
    auto_remove: bool = False
    exit_code: int | None = None
    oom_killed: bool = False
    error: str = ""
    created_at: str = ""
    started_at: str = ""
    finished_at: str = ""
    restart_count: int = 0
    published_ports: tuple[int, ...] = ()
    image: str = ""
    claims: Owner | None = None
    unasked: Settings = ()
    settings: Settings = ()
    live_secrets: SecretMarks = NO_MARKS

    @property
    def is_running(self) -> bool:
        """Whether it holds memory, GPUs and ports, or will again by itself."""
        return self.state in RUNNING_STATES

    def is_of(self, fleet: str) -> bool:
        """Whether this fleet made it: as a rank, or to try one out."""
        return fleet in {self.owner and self.owner.fleet, self.preflight and self.preflight.fleet}


@dataclass(frozen=True)
class Placed:
    """A container of ours and the node it is on."""

    node: str
    container: Container


@dataclass(frozen=True)
class Listener:
    """A listening TCP port. `container_id` and `process` are known only where the SSH user may see them."""

    port: int
    address: str = "*"
    process: str | None = None
    container_id: str | None = None


@dataclass(frozen=True)
class Gpu:
    """A GPU as `nvidia-smi` names it, its memory, and how much of that is in use."""

    name: str
    memory_bytes: int | None = None
    driver: str | None = None
    used_bytes: int | None = None


@dataclass(frozen=True)
class LocalImage:
    """An image of a node's store.

    `id` is what a container can be created from on this node (the config digest in the classic store, the manifest or
    index digest in the containerd store), so it is never compared between nodes. `digests` are the manifest or index
    digests it is known by, under any repository name. `usable` is False for an image that is listed but whose content
    for this node's platform is not there (the containerd store lists such). `complete`: every compressed blob is there,
    too, so that other nodes could be served from it; only the containerd store keeps them.

    Told by `Images.inventory` only: `diff_ids` (its layers' content, from the base upwards), `size_bytes` (unpacked)
    and `tagged_at` (when it was last given a name, RFC 3339).
    """

    id: str
    digests: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    usable: bool = True
    complete: bool = False
    diff_ids: tuple[str, ...] = ()
    size_bytes: int | None = None
    tagged_at: str = ""

    def holds(self, pin: ImagePin) -> bool:
        """Whether it is this content, under whatever name, and can run."""
        return self.usable and (self.id == pin.digest or pin.digest in self.digests or self.id in pin.configs)


@dataclass(frozen=True)
class NodeFacts:
    """Everything read from one node, in one go. Sizes in bytes.

    `missing_paths`: of the paths that were looked for, those that are certainly not there. `has_python`: a `python3` is
    on the login's PATH, so that the node can pass images on. `host`: what is not known of every node. `models`: what is
    at the places that were looked at. `defaults`: of the images of ranks that run.
    """

    node: str
    platform: str
    boot_id: str
    store: Literal["classic", "containerd"]
    docker_version: str
    docker_root: str
    disk_free_bytes: int | None
    memory_available_bytes: int | None
    memory_total_bytes: int | None
    containers: tuple[Container, ...] = ()
    images: tuple[LocalImage, ...] = ()
    listeners: tuple[Listener, ...] = ()
    gpus: tuple[Gpu, ...] = ()
    missing_paths: tuple[str, ...] = ()
    has_python: bool = False
    host: Host = NOTHING_KNOWN
    models: tuple[ModelFacts, ...] = ()
    defaults: tuple[ImageDefaults, ...] = ()

    def defaults_of(self, image_id: str) -> ImageDefaults | None:
        """What an image gives its containers; None where it was not asked."""
        return next((item for item in self.defaults if item.image_id == image_id), None)

    def model_at(self, place: ModelPlace) -> ModelFacts | None:
        """What is at a place, None when it was not looked at."""
        return next((item for item in self.models if item.place == place), None)

    def image_for(self, pin: ImagePin) -> LocalImage | None:
        """The usable local image whose content is `pin`, under whatever name; None when there is none."""
        return next((image for image in self.images if image.holds(pin)), None)

    def runs(self, fingerprint: str) -> bool:
        """Whether a container of ours with this fingerprint runs."""
        return any(item.owner and item.owner.fingerprint == fingerprint and item.is_running for item in self.containers)

    def container(self, name: str) -> Container | None:
        """The container of this name, in any state."""
        return next((item for item in self.containers if item.name == name), None)


def facts_digest(facts: NodeFacts) -> str:
    """Digest of what plans depend on: boot, containers with their state, images. Free disk and memory wander."""
    containers = sorted((item.id, item.name, item.state) for item in facts.containers)
    images = sorted((item.id, item.usable) for item in facts.images)
    return fingerprint({"boot": facts.boot_id, "containers": containers, "images": images})


@dataclass(frozen=True)
class SourceImage:
    """What the sources say of a pinned image. `bytes_by_platform`: compressed sizes.

    `image`: its content down to the layers, where it is known. `origin`: where its bytes would come from, for people
    ("the vault", "https://ghcr.io", "node dgx1").
    """

    digest: str
    bytes_by_platform: tuple[tuple[str, int], ...]
    image: LockedImage | None = None
    origin: str = ""

    @property
    def platforms(self) -> tuple[str, ...]:
        """The platforms it can run on, for example ("linux/amd64", "linux/arm64")."""
        return tuple(platform for platform, _ in self.bytes_by_platform)


@dataclass(frozen=True)
class SourceMissing:
    """The source was asked and does not have the image."""

    digest: str
    reason: str


@dataclass(frozen=True)
class SourceUnknown:
    """The source could not be asked, or is one that only the node itself reaches."""

    digest: str
    reason: str


Source = SourceImage | SourceMissing | SourceUnknown


@dataclass(frozen=True)
class Observed:
    """The fleet as seen once. `sources` has an entry for each pinned image that some node lacks.

    `secrets`: what the controller can say of those that containers of ours were made with.
    """

    nodes: Mapping[str, NodeFacts | Unknown]
    sources: Mapping[str, Source]
    secrets: SeenSecrets = NOTHING_SEEN

    def facts(self, node: str) -> NodeFacts | None:
        """The node's facts, None when it is unknown or was never asked."""
        found = self.nodes.get(node)
        return found if isinstance(found, NodeFacts) else None
