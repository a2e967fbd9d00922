"""Facts of the host, by one POSIX sh script and a pure parser of what it prints.

The script prints sections between markers, so that a noisy start-up file of the login shell does no harm. A tool that
is missing leaves its section empty, and the fact unknown.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_address

from reconciler.core.host import NOTHING_KNOWN, Host
from reconciler.core.observed import Gpu, Listener
from reconciler.nodes import host_facts

MARK = "@@fleet "
ANY_ADDRESS = frozenset({"0.0.0.0", "::", "*"})  # noqa: S104 - read, not bound
Lines = Sequence[str]

SCRIPT = r"""
exec 2>/dev/null
LC_ALL=C; export LC_ALL
PATH="$PATH:/usr/local/sbin:/usr/sbin:/sbin:/usr/lib/wsl/lib"; export PATH
part() { printf '\n@@fleet %s\n' "$1"; }
limit=; command -v timeout >/dev/null && limit='timeout 5'
part begin
part clock; date +%s.%N
part machine; uname -m
part boot; cat /proc/sys/kernel/random/boot_id
part memory; grep -E '^Mem(Total|Available):' /proc/meminfo
part disk
for word in disk:/var/lib/docker disk:/var/lib/containerd "$@"; do
  case $word in disk:*)
    dir=${word#disk:}
    kib=$(df -P -k "$dir" | awk 'NR == 2 { print $4 }') && [ -n "$kib" ] && printf '%s %s\n' "$kib" "$dir"
  esac
done
part missing
for word in "$@"; do
  case $word in path:*)
    path=${word#path:}
    [ -e "$path" ] && continue
    above=$path
    while [ -n "$above" ] && [ ! -e "$above" ]; do above=${above%/*}; done
    [ -x "${above:-/}" ] && printf '%s\n' "$path"
  esac
done
part listen
if command -v ss >/dev/null; then ss -ltnpH
else cat /proc/net/tcp /proc/net/tcp6
fi
part cgroup
grep -sEm1 '[0-9a-f]{64}' /proc/[0-9]*/cgroup
part python; command -v python3
part gpu
if command -v nvidia-smi >/dev/null; then
  csv=--format=csv,noheader,nounits
  $limit nvidia-smi --query-gpu=name,memory.total,driver_version,memory.used $csv &&
  apps=$($limit nvidia-smi --query-compute-apps=pid,used_memory,process_name $csv) &&
  part gpu-processes && printf '%s\n' "$apps"
fi
part interfaces; ip -br addr
part rdma
[ -d /sys/class/net ] && echo seen
for port in /sys/class/infiniband/*/ports/*; do
  [ -d "$port" ] || continue
  grep -s . "$port/state" "$port/link_layer" /dev/null
  grep -sv '^0000:0000:0000:0000:0000:0000:0000:0000$' "$port"/gids/* /dev/null
  grep -s . "$port"/gid_attrs/types/* "$port"/gid_attrs/ndevs/* /dev/null
done
part uptime; cat /proc/uptime
part boots; $limit last -n 50 -s -1days reboot
part gpu-hook; command -v nvidia-container-runtime-hook || command -v nvidia-container-toolkit || command -v nvidia-ctk
part top
grep -sE '^(Name|VmRSS):' /proc/[0-9]*/status /dev/null | awk -F: '
  $2 == "Name" { name = substr($0, index($0, ":Name:") + 6) }
  $2 == "VmRSS" { split($1, at, "/"); print $3 + 0, at[3], name }' | sort -rn | head -n 8
part end
"""
"""Arguments: `disk:DIR`, a further directory whose free space is asked (the Docker root, when it is not the usual
one), and `path:PATH`, which is told when it is certainly not there. What is below a folder that the login may not
search is not told: nothing is known of it. A link that leads nowhere is not there.
"""


@dataclass(frozen=True)
class HostFacts:
    """What the script found. `disk_free` maps a directory that is there to its free bytes.

    `epoch_s`: the node's clock when the script began, in seconds since 1970. `host` lacks what Docker and the
    controller's own clock have to say.
    """

    machine: str | None
    boot_id: str
    memory_total_bytes: int | None
    memory_available_bytes: int | None
    disk_free: Mapping[str, int]
    listeners: tuple[Listener, ...]
    gpus: tuple[Gpu, ...]
    missing_paths: tuple[str, ...] = ()
    has_python: bool = False
    host: Host = NOTHING_KNOWN
    epoch_s: float | None = None


def parse(output: str) -> HostFacts | None:
    """The facts in the script's output; None when it did not run to its end."""
    parts = sections(output)
    if "begin" not in parts or "end" not in parts:
        return None
    memory = _memory(parts.get("memory", ()))
    containers = _containers(parts.get("cgroup", ()))
    return HostFacts(
        machine=_first(parts.get("machine", ())),
        boot_id=_first(parts.get("boot", ())) or "",
        memory_total_bytes=memory.get("MemTotal"),
        memory_available_bytes=memory.get("MemAvailable"),
        disk_free=_disk(parts.get("disk", ())),
        listeners=_listeners(parts.get("listen", ()), containers),
        gpus=tuple(gpu for line in parts.get("gpu", ()) if (gpu := _gpu(line))),
        missing_paths=tuple(parts.get("missing", ())),
        has_python=bool(parts.get("python")),
        host=host_facts.host(parts, containers),
        epoch_s=host_facts.epoch_s(parts.get("clock", ())),
    )


def sections(output: str) -> dict[str, list[str]]:
    """Non-empty lines by the marker they follow."""
    found: dict[str, list[str]] = {}
    current: list[str] = []
    for raw in output.splitlines():
        line = raw.strip()
        if line.startswith(MARK):
            current = found.setdefault(line.removeprefix(MARK), [])
        elif line:
            current.append(line)
    return found


def _first(lines: Lines) -> str | None:
    return lines[0] if lines else None


def _memory(lines: Lines) -> dict[str, int]:
    matches = (re.match(r"(\w+):\s+(\d+) kB", line) for line in lines)
    return {match[1]: int(match[2]) * 1024 for match in matches if match}


def _disk(lines: Lines) -> dict[str, int]:
    matches = (re.match(r"(\d+) (/.*)", line) for line in lines)
    return {match[2]: int(match[1]) * 1024 for match in matches if match}


def _containers(lines: Lines) -> dict[int, str]:
    """Container ids by process, from either form of cgroup: `.../docker/ID` and `.../docker-ID.scope`."""
    matches = (re.match(r"/proc/(\d+)/cgroup:.*?([0-9a-f]{64})", line) for line in lines)
    return {int(match[1]): match[2] for match in matches if match}


def _listeners(lines: Lines, containers: Mapping[int, str]) -> tuple[Listener, ...]:
    found = (_from_ss(line, containers) or _from_proc(line) for line in lines)
    return tuple(sorted({item for item in found if item}, key=lambda item: (item.port, item.address)))


def _from_ss(line: str, containers: Mapping[int, str]) -> Listener | None:
    """`LISTEN 0 4096 0.0.0.0:8000 0.0.0.0:* users:(("python3",pid=712,fd=3))`."""
    match = re.match(r"LISTEN\s+\d+\s+\d+\s+(\S+):(\d+)\s+\S+(?:\s+users:\(\(\"(.*?)\",pid=(\d+))?", line)
    if not match:
        return None
    pid = int(match[4]) if match[4] else None
    container = containers.get(pid) if pid else None
    return Listener(int(match[2]), _address(match[1]), match[3], container)


def _from_proc(line: str) -> Listener | None:
    """`0: 0100007F:1F90 00000000:0000 0A ...`: hexadecimal, state 0A is listening."""
    match = re.match(r"\d+: ([0-9A-F]{8}(?:[0-9A-F]{24})?):([0-9A-F]{4}) [0-9A-F]+:0000 0A ", line)
    if not match:
        return None
    return Listener(int(match[2], 16), _hex_address(match[1]))


def _hex_address(digits: str) -> str:
    """The kernel prints 32-bit words in the machine's byte order, which is little-endian on all we run on."""
    words = [bytes.fromhex(digits[at : at + 8])[::-1] for at in range(0, len(digits), 8)]
    return _address(str(ip_address(b"".join(words))))


def _address(text: str) -> str:
    bare = text.split("%", 1)[0].strip("[]")
    return "*" if bare in ANY_ADDRESS else bare


def _gpu(line: str) -> Gpu | None:
    """`NVIDIA GB10, [N/A], 580.95.05, [N/A]`: a GPU that shares the machine's memory does not say how much it has."""
    fields = [field.strip() for field in line.split(",")]
    if len(fields) not in {3, 4}:
        return None
    name, total, driver, *used = fields
    return Gpu(
        name,
        host_facts.mebibytes(total),
        None if driver.startswith("[") else driver,
        host_facts.mebibytes(used[0]) if used else None,
    )
