"""What a lab is asked to be, and the names that follow from it: all it owns carries its name."""

import ipaddress
import os
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from .shell import LabError

CLASSIC, CONTAINERD = "classic", "containerd"


def cache_dir() -> Path:
    """Where downloads and built artefacts outlive every lab."""
    return Path(os.environ.get("FLEET_LAB_CACHE", "/var/cache/fleet-lab"))


def labs_dir() -> Path:
    """Where the folders of all labs of this machine live."""
    return Path(os.environ.get("FLEET_LAB_DIR", "/var/lib/fleet-lab"))


@dataclass(frozen=True)
class NodeConfig:
    """One node before it exists: names and addresses only."""

    lab: str
    name: str
    address: str
    bridge: str
    prefix: int
    gateway: str
    store: str
    namespace: str
    link: str
    folder: Path
    small_disk_mb: int | None


@dataclass(frozen=True)
class LabConfig:
    """The parameters of a lab; two labs with different names and subnets share nothing."""

    name: str = "fleetlab"
    subnet: str = "10.77.0.0/24"
    nodes: int = 4
    small_disk_mb: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[a-z][a-z0-9]{1,9}", self.name):
            raise LabError(f"lab name {self.name!r}: 2 to 10 lower-case letters and digits (interface names are short)")
        if not 1 <= self.nodes <= 99:
            raise LabError(f"a lab has 1 to 99 nodes, not {self.nodes}")
        if self.network.num_addresses < self.nodes + 12:
            raise LabError(f"subnet {self.subnet} is too small for {self.nodes} nodes")
        if unknown := set(self.small_disk_mb) - {f"node{number}" for number in range(1, self.nodes + 1)}:
            raise LabError(f"small disk for {', '.join(sorted(unknown))}: no such node")

    @property
    def network(self) -> ipaddress.IPv4Network:
        return ipaddress.IPv4Network(self.subnet)

    @property
    def folder(self) -> Path:
        return labs_dir() / self.name

    @property
    def bridge(self) -> str:
        return f"{self.name}-br"

    @property
    def gateway(self) -> str:
        return str(self.network[1])

    @property
    def favourite_port(self) -> int:
        """The registry's port: the same in every run of a lab of this name, so that references stay the same."""
        return 20000 + zlib.crc32(self.name.encode()) % 10000

    def node(self, number: int) -> NodeConfig:
        """Node 1, 2, ...: pairs of the classic and the containerd image store take turns."""
        return NodeConfig(
            lab=self.name,
            name=f"node{number}",
            bridge=self.bridge,
            address=str(self.network[10 + number]),
            prefix=self.network.prefixlen,
            gateway=self.gateway,
            store=CLASSIC if (number - 1) // 2 % 2 == 0 else CONTAINERD,
            namespace=f"{self.name}-node{number}",
            link=f"{self.name}-{number}",
            folder=self.folder / f"node{number}",
            small_disk_mb=self.small_disk_mb.get(f"node{number}"),
        )

    def all_nodes(self) -> list[NodeConfig]:
        return [self.node(number) for number in range(1, self.nodes + 1)]
