"""The optional facts of a host, out of the sections that `facts.SCRIPT` prints. What is not there is not known."""

import re
from collections.abc import Iterator, Mapping, Sequence
from ipaddress import IPv6Address, ip_address
from typing import Any

from reconciler.core.host import Clock, Gid, GpuSupport, Host, Interface, Process, RdmaPort

Lines = Sequence[str]
Sections = Mapping[str, Lines]

UP = {"UP": True, "DOWN": False, "LOWERLAYERDOWN": False, "NOTPRESENT": False, "DORMANT": False}
"""The kernel's operational states. UNKNOWN, which loopback and tunnels say, is not told."""

DAY_S = 86400


def host(parts: Sections, containers: Mapping[int, str]) -> Host:
    """All facts that the script can tell. `containers`: container ids by process."""
    top, apps = parts.get("top"), parts.get("gpu-processes")
    uptime_s, now_s = _uptime_s(parts.get("uptime", ())), epoch_s(parts.get("clock", ()))
    return Host(
        interfaces=_interfaces(parts.get("interfaces", ())) or None,
        rdma=_rdma(parts.get("rdma", ())),
        uptime_s=uptime_s,
        booted_s=None if uptime_s is None or now_s is None else now_s - uptime_s,
        boots_in_a_day=_boots(parts.get("boots", ()), uptime_s),
        gpu_support=GpuSupport((), hook=bool(parts.get("gpu-hook"))),
        gpu_processes=None if apps is None else tuple(_gpu_processes(apps, containers)),
        top_processes=tuple(_top(top, containers)) if top else None,
    )


def epoch_s(lines: Lines) -> float | None:
    """`1796046518.250013000`; a `date` without %N prints whole seconds and rubbish: then the half second is taken."""
    match = re.match(r"(\d+)(?:\.(\d+))?", lines[0]) if lines else None
    if match is None:
        return None
    return float(match[1]) + (float(f"0.{match[2]}") if match[2] else 0.5)


def clock(epoch_s: float | None, sent_s: float, received_s: float) -> Clock | None:
    """The node's clock against the controller's, which said `sent_s` and `received_s` around the reading."""
    if epoch_s is None or received_s < sent_s:
        return None
    return Clock(epoch_s - (sent_s + received_s) / 2, (received_s - sent_s) / 2)


def gpu_support(info: Mapping[str, Any], host: Host) -> GpuSupport:
    """What Docker's `/info` says of GPUs, with what the host says. CDI is told from 25 on, its devices from 28.2."""
    devices = info.get("DiscoveredDevices")
    return GpuSupport(
        runtimes=tuple(sorted(info.get("Runtimes") or ())),
        default_runtime=str(info.get("DefaultRuntime") or ""),
        cdi_dirs=tuple(info.get("CDISpecDirs") or ()),
        cdi_devices=None if devices is None else tuple(sorted(str(item.get("ID", "")) for item in devices)),
        hook=host.gpu_support is not None and host.gpu_support.hook,
    )


def mebibytes(text: str) -> int | None:
    """Bytes; None for `[N/A]` and its kind."""
    return int(text) * 2**20 if text.isdecimal() else None


def _interfaces(lines: Lines) -> tuple[Interface, ...]:
    """`eth0@if5  UP  10.0.0.1/24 fe80::1/64`, as `ip -br addr` prints it."""
    rows = (line.split() for line in lines)
    return tuple(
        Interface(row[0].partition("@")[0], UP.get(row[1]), tuple(_addresses(row[2:]))) for row in rows if len(row) > 1
    )


def _addresses(words: Sequence[str]) -> Iterator[str]:
    for before, word in zip(("", *words), words, strict=False):
        if before != "peer" and re.match(r"[0-9a-fA-F.:]+(/\d+)?$", word):
            yield str(ip_address(word.partition("/")[0]))


def _rdma(lines: Lines) -> tuple[RdmaPort, ...] | None:
    """`/sys/class/infiniband/mlx5_0/ports/1/gids/3:0000:...`, file by file. None where /sys could not be read."""
    if not lines:
        return None
    found: dict[tuple[str, int], dict[str, str]] = {}
    for line in lines:
        match = re.match(r"/sys/class/infiniband/([^/]+)/ports/(\d+)/([\w/]+):(.*)", line)
        if match:
            found.setdefault((match[1], int(match[2])), {})[match[3]] = match[4].strip()
    return tuple(_port(device, port, files) for (device, port), files in sorted(found.items()))


def _port(device: str, port: int, files: Mapping[str, str]) -> RdmaPort:
    """`state` is `4: ACTIVE`."""
    indexes = sorted(int(name.removeprefix("gids/")) for name in files if name.startswith("gids/"))
    gids = tuple(
        Gid(
            index,
            _gid(files[f"gids/{index}"]),
            files.get(f"gid_attrs/types/{index}", ""),
            files.get(f"gid_attrs/ndevs/{index}", ""),
        )
        for index in indexes
    )
    state = files.get("state", "").rpartition(":")[2].strip()
    return RdmaPort(device, port, state, files.get("link_layer", ""), gids)


def _gid(text: str) -> str:
    """As `ip` would print the address; one that stands for an IPv4 address is that address."""
    address = IPv6Address(text)
    return str(address.ipv4_mapped or address)


def _uptime_s(lines: Lines) -> float | None:
    match = re.match(r"\d+(\.\d+)?", lines[0]) if lines else None
    return float(match[0]) if match else None


def _boots(lines: Lines, uptime_s: float | None) -> int | None:
    """Its last line, `wtmp begins ...`, shows that there is a record; one that lacks the last boot is not believed."""
    told = sum(line.startswith("reboot ") for line in lines)
    is_kept = any(re.search(r"\bbegins\b", line) for line in lines)
    lacks_the_last = told == 0 and uptime_s is not None and uptime_s < DAY_S
    return told if is_kept and not lacks_the_last else None


def _gpu_processes(lines: Lines, containers: Mapping[int, str]) -> Iterator[Process]:
    """`4711, 61234, /usr/bin/python3`."""
    for line in lines:
        match = re.match(r"(\d+)\s*,\s*([^,]*?)\s*,\s*(.*)", line)
        if match:
            pid = int(match[1])
            yield Process(pid, match[3].rpartition("/")[2], mebibytes(match[2]), containers.get(pid))


def _top(lines: Lines, containers: Mapping[int, str]) -> Iterator[Process]:
    """`123456 4711 VLLM::EngineCor`: KiB, process, name."""
    for line in lines:
        match = re.match(r"(\d+)\s+(\d+)\s+(.*)", line)
        if match:
            pid = int(match[2])
            yield Process(pid, match[3], int(match[1]) * 1024, containers.get(pid))
