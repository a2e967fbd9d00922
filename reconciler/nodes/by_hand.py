"""Settings of containers that ours are made without, as Docker tells of them: what else there is, a hand has set. Pure.

Nothing is told that an engine's own configuration gives to all containers (default ulimits, runtime, cgroup namespace).
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from reconciler.core.identity import PREFIX
from reconciler.core.image_defaults import ImageDefaults, Settings
from reconciler.nodes.container_create import LOG_CONFIG

Json = Mapping[str, Any]

UNASKED = (
    *("Memory", "MemorySwap", "MemoryReservation", "NanoCpus", "CpuShares", "CpuQuota", "CpuPeriod", "CpusetCpus"),
    *("CpusetMems", "CpuRealtimePeriod", "CpuRealtimeRuntime", "PidsLimit", "OomKillDisable", "OomScoreAdj"),
    *("BlkioWeight", "Privileged", "ReadonlyRootfs", "PidMode", "UTSMode", "CapAdd", "CapDrop", "Binds", "Tmpfs"),
    *("VolumesFrom", "ExtraHosts", "Dns", "GroupAdd", "Sysctls", "PublishAllPorts", "PortBindings"),
    *("SecurityOpt", "DeviceCgroupRules", "CgroupParent", "UsernsMode", "Init", "DnsOptions", "DnsSearch", "Links"),
    *("StorageOpt", "BlkioWeightDevice", "BlkioDeviceReadBps", "BlkioDeviceWriteBps", "BlkioDeviceReadIOps"),
    *("BlkioDeviceWriteIOps", "KernelMemory", "KernelMemoryTCP", "Annotations"),
)
"""Settings of a HostConfig that `container_create.payload` never makes, and that are empty or 0 where nobody did."""

OF_ITSELF = {"SecurityOpt": ["label=disable"]}
"""What Docker adds to a container that is privileged, or shares namespaces of the node: that itself is told."""

OF_CONFIG = ("User", "WorkingDir", "StopSignal", "StopTimeout", "Healthcheck", "Tty", "OpenStdin")
"""Settings of a Config that a container has of its image, if at all."""

SETS = ("Volumes", "ExposedPorts")
"""Those of which only the names count."""

PRIVATE = frozenset({"", "none", "private", "shareable"})
"""What an engine makes of the IPC namespace by itself."""


def unasked(host: Json, network: Json) -> Settings:
    """What a HostConfig sets and ours never do, with the networks it is connected to beside its own (`docker network
    connect`)."""
    more = sorted(set(network.get("Networks") or {}) - {str(host.get("NetworkMode", ""))})
    plain = tuple((key, str(host[key])) for key in UNASKED if host.get(key) and host[key] != OF_ITSELF.get(key))
    return (*plain, *_otherwise(host), *((("Networks", ", ".join(more)),) if more else ()))


def _otherwise(host: Json) -> Iterator[tuple[str, str]]:
    """Settings that are there in any case, and are not as ours are."""
    swappiness, log = host.get("MemorySwappiness"), host.get("LogConfig")
    if swappiness is not None and swappiness >= 0:
        yield "MemorySwappiness", str(swappiness)
    if str(host.get("IpcMode") or "") not in PRIVATE:
        yield "IpcMode", str(host["IpcMode"])
    if log is not None and log != LOG_CONFIG:
        yield "LogConfig", _text(log)
    for name in ("MaskedPaths", "ReadonlyPaths"):
        if host.get(name) == [] and not host.get("Privileged"):  # as with `--security-opt systempaths=unconfined`
            yield name, "none"
    mounts = [item for item in host.get("Mounts") or () if _is_unlike_ours(item)]
    if mounts:
        yield "Mounts", _text(mounts)


def _is_unlike_ours(mount: Json) -> bool:
    """Ours are binds, with no options. Sources and targets of binds are compared one by one."""
    return mount.get("Type") != "bind" or bool((mount.get("BindOptions") or {}).get("Propagation"))


def settings(config: Json) -> Settings:
    """What a Config says of a container, or of an image for all containers of it. Labels of ours are no settings."""
    plain = ((name, config.get(name)) for name in OF_CONFIG)
    sets = ((name, sorted(config.get(name) or ())) for name in SETS)
    labels = (
        (f"label {key}", value)
        for key, value in sorted((config.get("Labels") or {}).items())
        if not key.startswith(PREFIX)
    )
    found = ((name, _text(value)) for name, value in (*plain, *sets, *labels) if value)
    return tuple((name, text) for name, text in found if (name, text) != ("WorkingDir", "/"))


def image_defaults(image_id: str, found: Json) -> ImageDefaults:
    """From `/images/ID/json`."""
    config = found.get("Config") or {}
    entrypoint = config.get("Entrypoint")
    return ImageDefaults(
        image_id,
        env=tuple((key, value) for key, _, value in (line.partition("=") for line in config.get("Env") or ())),
        entrypoint=None if entrypoint is None else tuple(entrypoint),
        settings=settings(config),
    )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)
