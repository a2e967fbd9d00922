"""What a simulated node says of itself beside containers and images."""

from collections.abc import Iterable
from dataclasses import replace

from reconciler.core.host import Clock, GpuSupport, Host, Interface, Process, RdmaPort
from reconciler.testing.containers import SimContainer

SYSTEM = Process(1, "systemd", 12 * 2**20)


def sim_host(interfaces: tuple[Interface, ...] | None, rdma: tuple[RdmaPort, ...] | None, gpus: int) -> Host:
    """A node in good order. None: it does not tell."""
    runtimes = ("nvidia", "runc") if gpus else ("runc",)
    return Host(
        interfaces=interfaces,
        rdma=rdma,
        clock=Clock(0.0, 0.01),
        uptime_s=30 * 86400.0,
        boots_in_a_day=0,
        gpu_support=GpuSupport(runtimes, "runc", hook=bool(gpus)),
    )


def with_processes(host: Host, gpus: int, containers: Iterable[SimContainer]) -> Host:
    """The same with what the running containers hold: each is one process."""
    running = [item for item in containers if item.is_running]
    held = [Process(1000 + number, item.name, item.held_bytes, item.id) for number, item in enumerate(running)]
    top = sorted((*held, SYSTEM), key=lambda item: (-(item.memory_bytes or 0), item.pid))
    on_gpu = [one for one, item in zip(held, running, strict=True) if item.spec.gpus and item.held_bytes]
    return replace(host, top_processes=tuple(top[:8]), gpu_processes=tuple(on_gpu) if gpus else None)
