"""What there is: registries, nodes and clusters."""

from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field, Strict

from specs.days import Day
from specs.diagnostics import refuse
from specs.fields import (
    Address,
    Endpoint,
    Hca,
    Host,
    HostKey,
    KernelInterface,
    Name,
    Platform,
    Port,
    Protected,
    ProxyJump,
    Reason,
    User,
)
from specs.paths import PLACEHOLDER, AbsolutePath
from specs.quantities import ByteSize, PositiveSize
from specs.records import Record


def _unique(names: tuple[str, ...]) -> tuple[str, ...]:
    first: dict[str, int] = {}
    for index, name in enumerate(names):
        if first.setdefault(name, index) != index:
            raise refuse(f"'{name}' is named twice", "Each node takes part once.", below=(index,))
    return names


LocalPath = Annotated[Path, Strict(strict=False)]
NodeNames = Annotated[tuple[Name, ...], Strict(strict=False), Field(min_length=1), AfterValidator(_unique)]


class Registry(Record):
    """How an image registry is reached. Logins are those of Docker's own configuration (~/.docker/config.json)."""

    endpoint: Endpoint | None = Field(
        default=None,
        description='URL, http or https, where the controller reaches this registry, e.g. "http://127.0.0.1:5000"; '
        "default: https at its own name, http for one on the controller's loopback",
    )
    from_nodes: bool = Field(
        default=False,
        description="whether the nodes' own daemons may pull from it where the controller cannot have the image",
    )


class Images(Record):
    """How images are kept, moved and cleaned up."""

    vault: LocalPath | None = Field(
        default=None,
        description="folder on the controller that keeps image blobs by content: relative to this file, ~ is the home "
        "folder; default: $FLEET_VAULT, or else fleet/vault in $XDG_CACHE_HOME or ~/.cache",
    )
    parallel: int = Field(default=8, ge=1, le=256, description="how many nodes are brought images at the same time")
    bandwidth: PositiveSize | None = Field(
        default=None, description="bytes a second that may leave the controller for images (100MiB); default: no limit"
    )
    uplink: PositiveSize = Field(
        default=110 * 2**20,
        description="bytes a second that the controller can send, to choose between sending to each node and to one "
        "that passes on, and for estimates; default: 110MiB (1 Gbit/s)",
    )
    unpack: PositiveSize = Field(
        default=170 * 2**20,
        description="uncompressed bytes a second that a node unpacks, for the same; default: 170MiB (an NVIDIA Grace)",
    )
    relay: bool = Field(default=True, description="whether a node may pass images on to its neighbours")
    retain: int = Field(
        default=1,
        ge=0,
        le=100,
        description="of each repository, how many images that nothing uses now `fleet images gc` keeps on a node",
    )
    protect: Annotated[tuple[Protected, ...], Strict(strict=False)] = Field(
        default=(),
        description="what `fleet images gc` never touches: image names as registry/repository, alone or with :tag or "
        "@digest, where * stands for any text and ? for any character; and absolute paths on the controller (a vault)",
    )


class Ssh(Record):
    """How the controller reaches a node. ~/.ssh/config is not read.

    Keys tried: `identity_file`, or else ~/.ssh/id_ed25519, id_ecdsa and id_rsa; and those of the SSH agent that
    SSH_AUTH_SOCK names. A key with a passphrase has to be in the agent.
    """

    host: Host = Field(description="host name or IP address")
    port: Port = Field(default=22, description="TCP port of sshd")
    user: User | None = Field(default=None, description="login name; default: the user who runs fleet")
    identity_file: LocalPath | None = Field(
        default=None,
        description="private key without a passphrase, a path on the controller: relative to this file, ~ is the home "
        "folder; default: the usual ones in ~/.ssh",
    )
    known_hosts: LocalPath | None = Field(
        default=None,
        description="known_hosts file, a path on the controller: relative to this file, ~ is the home folder",
    )
    host_key: HostKey | None = Field(
        default=None, description='the pinned public key of the host: "ssh-ed25519 AAAA..."; wins over known_hosts'
    )
    proxy_jump: ProxyJump | None = Field(default=None, description="jump host: [user@]host[:port]")


class Docker(Record):
    """The Docker daemon of a node."""

    socket: AbsolutePath = Field(default="/var/run/docker.sock", description="the daemon's Unix socket on the node")


class Interface(Record):
    """A network interface of a node that a cluster can use as its fabric."""

    name: KernelInterface = Field(description="its name in the kernel, e.g. enp1s0f0np0")
    hca: Hca | None = Field(default=None, description="its RDMA device, e.g. rocep1s0f0; several separated by commas")
    address: Address = Field(description="its IP address, without a prefix length")


class Off(Record):
    """A node that is powered off, and known to be: it is never contacted, and what is placed on it waits."""

    reason: Reason = Field(description="why it is off")
    until: Day | None = Field(
        default=None, description="the last day on which it is, for example 2026-12-24; default: until this key goes"
    )


class Node(Record):
    """One machine reached by SSH that runs Docker."""

    ssh: Ssh = Field(description="how the controller reaches the node")
    docker: Docker = Field(default=Docker(), description="the Docker daemon of the node")
    platform: Platform = Field(description="os/arch[/variant] of its images, e.g. linux/amd64 or linux/arm64")
    gpus: int = Field(default=0, ge=0, le=1024, description="number of GPUs")
    memory: ByteSize | None = Field(
        default=None, description="memory that lanes can use, in bytes (128GiB); default: not checked"
    )
    interfaces: dict[Name, Interface] = Field(
        default_factory=dict, description="fabric interfaces by a name that is the same on all nodes of a cluster"
    )
    paths: dict[Name, AbsolutePath] = Field(
        default_factory=dict, description="folders on the node that lanes and models name as {paths.NAME}"
    )

    off: Off | None = Field(
        default=None, description="declares the node powered off; default: it is on, and one that is silent is told"
    )

    def expand(self, text: str) -> str:
        """Return `text` with each {paths.NAME} replaced by this node's path.

        Raises KeyError for a path the node does not have; a loaded spec has checked that.
        """
        return PLACEHOLDER.sub(lambda match: self.paths[match[1]], text)


class Nccl(Record):
    """Settings of NCCL that belong to the fabric of a cluster."""

    gid_index: int | None = Field(
        default=None, ge=0, le=255, description="index of the RoCE GID (NCCL_IB_GID_INDEX); default: NCCL chooses"
    )


class Cluster(Record):
    """A named ordered set of nodes with its fabric settings. Clusters may share nodes."""

    nodes: NodeNames = Field(description="the nodes in order; the first ones are taken first, rank 0 is the head")
    interface: Name | None = Field(
        default=None, description="the fabric: the name of an interface that each node has; default: the SSH host"
    )
    port: Port = Field(default=30000, description="TCP port of the HTTP server of the head")
    rendezvous_port: Port = Field(default=29501, description="TCP port on the head where the ranks meet")
    nccl: Nccl = Field(default=Nccl(), description="NCCL settings of the fabric")
