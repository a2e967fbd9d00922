"""What a node says of itself beside its containers and images: wires, clock, boots, GPU runtime, who holds memory.

Every fact is optional. `None` is "not known" (a tool or a right is missing there), and an empty tuple is "known to be
none"; no check may refuse for what is not known.
"""

from dataclasses import dataclass

ROCE_V2 = "RoCE v2"
"""The kind of GID that NCCL needs on a routed or switched Ethernet fabric, in the kernel's words."""


@dataclass(frozen=True)
class Interface:
    """A network interface. `is_up`: it can carry packets (administratively up, with a carrier); None: not told."""

    name: str
    is_up: bool | None
    addresses: tuple[str, ...] = ()


@dataclass(frozen=True)
class Gid:
    """One entry of the GID table of an RDMA port: an IPv6 address, or the IPv4 address that it stands for.

    `kind` in the kernel's words; `interface`: its network device.
    """

    index: int
    address: str
    kind: str = ""
    interface: str = ""


@dataclass(frozen=True)
class RdmaPort:
    """A port of an RDMA device (HCA). `state` in the kernel's words: ACTIVE, DOWN, INIT, ARMED."""

    device: str
    port: int
    state: str
    link: str = ""
    gids: tuple[Gid, ...] = ()


@dataclass(frozen=True)
class Process:
    """A process that holds memory. `memory_bytes`: of the machine, or of the GPU; None where that is not told.

    `container_id`: the container it runs in, None for none or where it is not known.
    """

    pid: int
    name: str
    memory_bytes: int | None
    container_id: str | None = None


@dataclass(frozen=True)
class Clock:
    """How far the node's clock is ahead of the controller's, in seconds, give or take `error_s`."""

    offset_s: float
    error_s: float

    @property
    def surely_off_s(self) -> float:
        """By how much it is off at least."""
        return max(0.0, abs(self.offset_s) - self.error_s)


@dataclass(frozen=True)
class GpuSupport:
    """How Docker can give GPUs to containers there. `hook`: NVIDIA's hook or its tool is on the PATH.

    `cdi_devices`: what the daemon found by CDI, for example "nvidia.com/gpu=all"; None for a daemon that does not tell.
    """

    runtimes: tuple[str, ...]
    default_runtime: str = ""
    cdi_dirs: tuple[str, ...] = ()
    cdi_devices: tuple[str, ...] | None = None
    hook: bool = False


@dataclass(frozen=True)
class Host:
    """All of it. `boots_in_a_day`: how often it started within the last 24 hours, after its own records.
    `booted_s`: when it started last, by its own clock, in seconds since 1970.
    """

    interfaces: tuple[Interface, ...] | None = None
    rdma: tuple[RdmaPort, ...] | None = None
    clock: Clock | None = None
    uptime_s: float | None = None
    booted_s: float | None = None
    boots_in_a_day: int | None = None
    gpu_support: GpuSupport | None = None
    gpu_processes: tuple[Process, ...] | None = None
    top_processes: tuple[Process, ...] | None = None

    def interface(self, name: str) -> Interface | None:
        """The interface of this name; None when there is none, or none is known."""
        return next((item for item in self.interfaces or () if item.name == name), None)

    def with_address(self, address: str) -> Interface | None:
        """The interface that has this address."""
        return next((item for item in self.interfaces or () if address in item.addresses), None)

    def rdma_ports(self, device: str) -> tuple[RdmaPort, ...]:
        """The ports of an RDMA device, named as in NCCL_IB_HCA: `mlx5_0`, or `mlx5_0:1` for one port alone."""
        name, _, port = device.partition(":")
        return tuple(item for item in self.rdma or () if item.device == name and port in {"", str(item.port)})


NOTHING_KNOWN = Host()
