"""The body of `POST /containers/create` for one rank. Pure."""

from collections.abc import Mapping
from typing import Any

from reconciler.core.desired import ContainerSpec, EnvValue, SecretRef

Json = dict[str, Any]

LOG_CONFIG = {"Type": "json-file", "Config": {"max-size": "50m", "max-file": "3"}}
"""Engines log for months; Docker's default never rotates."""


def payload(spec: ContainerSpec, image_id: str, labels: Mapping[str, str], secrets: Mapping[str, str]) -> Json:
    """The rank as PID 1 on the host's network, never restarted nor removed by Docker.

    The image is given by its local id, so that no name is looked up and nothing is pulled. `entrypoint` None keeps the
    image's own. A missing mount source is an error, not a new empty folder (bind mounts of the older form make one).
    """
    body: Json = {
        "Image": image_id,
        "Cmd": list(spec.command),
        "Env": [f"{key}={_value(value, secrets)}" for key, value in spec.env],
        "Labels": dict(labels),
        "HostConfig": _host_config(spec),
    }
    if spec.entrypoint is not None:
        body["Entrypoint"] = list(spec.entrypoint)
    return body


def _value(value: EnvValue, secrets: Mapping[str, str]) -> str:
    return secrets[value.secret] if isinstance(value, SecretRef) else value


def _host_config(spec: ContainerSpec) -> Json:
    host: Json = {
        "NetworkMode": "host",
        "RestartPolicy": {"Name": "no"},
        "AutoRemove": False,
        "LogConfig": LOG_CONFIG,
        "Mounts": [_mount(item.source, item.target, item.read_only) for item in spec.mounts],
        "Devices": [_device(text) for text in spec.devices],
        "Ulimits": [{"Name": name, "Soft": value, "Hard": value} for name, value in spec.ulimits],
    }
    if spec.shm_bytes is not None:
        host["ShmSize"] = spec.shm_bytes
    if spec.gpus:
        host["DeviceRequests"] = [{"Driver": "", "Count": spec.gpus, "Capabilities": [["gpu"]]}]
    return host


def _mount(source: str, target: str, read_only: bool) -> Json:
    return {"Type": "bind", "Source": source, "Target": target, "ReadOnly": read_only}


def _device(text: str) -> dict[str, str]:
    """`/dev/outside[:/dev/inside[:rwm]]`."""
    outside, *rest = text.split(":")
    inside = rest[0] if rest else outside
    return {"PathOnHost": outside, "PathInContainer": inside, "CgroupPermissions": rest[1] if len(rest) > 1 else "rwm"}
