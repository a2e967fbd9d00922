"""What the Docker API says of containers and images -> the core's facts. Pure."""

import re
from collections.abc import Iterable, Mapping, Set
from typing import Any

from reconciler.core import identity
from reconciler.core.desired import EnvValue, ImagePin, Mount, SecretRef
from reconciler.core.observed import Container, LocalImage
from reconciler.core.preflight import SUFFIX, preflight_mark
from reconciler.core.secret_marks import Mark
from reconciler.nodes import by_hand

Json = Mapping[str, Any]

ALL_GPUS = 999
"""Stands for "all GPUs of the node" (`--gpus all`). More than any node has, so that sums and comparisons stay right."""

NEVER = "0001-01-01T00:00:00Z"
"""Docker's time for what has not happened."""


def is_ours(labels: Mapping[str, str] | None) -> bool:
    """Whether these labels are of a container of some fleet of ours: a rank, or one that only tries something out."""
    found = labels or {}
    return identity.owner_of(found) is not None or preflight_mark(SUFFIX, found) is not None


def container_from_list(entry: Json) -> Container:
    """A foreign container from `/containers/json` alone: enough to name it, and for its ports."""
    ports = {int(port["PublicPort"]) for port in entry.get("Ports") or () if port.get("PublicPort")}
    names = [_bare(name) for name in entry.get("Names") or ()]
    return Container(
        id=str(entry["Id"]),
        name=min(names, key=lambda name: name.count("/"), default=str(entry["Id"])[:12]),
        state=str(entry.get("State", "")),
        image_id=str(entry.get("ImageID", "")),
        image=str(entry.get("Image", "")),
        network_mode=str((entry.get("HostConfig") or {}).get("NetworkMode", "")),
        published_ports=tuple(sorted(ports)),
    )


def container_from_inspect(found: Json) -> Container:
    """A container from `/containers/ID/json`; env is kept of ours only, with secrets as references.

    `entrypoint`, `command` and `env` are as the container has them, so they show the image's own where the spec set
    none. Mounts are sorted by target: Docker gives them in any order.
    """
    config, host, state = found["Config"], found["HostConfig"], found["State"]
    labels = config.get("Labels") or {}
    name = _bare(str(found["Name"]))
    owner = identity.owner_by(name, labels)
    tried = preflight_mark(name, labels)
    finished = state.get("Status") in {"exited", "dead"}
    return Container(
        id=str(found["Id"]),
        name=name,
        state=str(state.get("Status", "")),
        image_id=str(found["Image"]),
        image=str(config.get("Image", "")),
        owner=owner,
        preflight=tried,
        entrypoint=_arguments(config.get("Entrypoint")),
        command=_arguments(config.get("Cmd")) or (),
        env=_env(config.get("Env") or (), identity.secret_references(labels)) if owner else (),
        mounts=_mounts(found.get("Mounts") or ()),
        devices=tuple(_device(item) for item in host.get("Devices") or ()),
        shm_bytes=host.get("ShmSize") or None,
        ulimits=tuple((str(item["Name"]), int(item["Soft"])) for item in host.get("Ulimits") or ()),
        gpus=requested_gpus(host) if owner or tried else gpu_count(host, config),
        network_mode=str(host.get("NetworkMode", "")),
        restart_policy=str((host.get("RestartPolicy") or {}).get("Name") or "no"),
        auto_remove=bool(host.get("AutoRemove")),
        exit_code=int(state["ExitCode"]) if finished else None,
        oom_killed=bool(state.get("OOMKilled")),
        error=str(state.get("Error") or ""),
        created_at=_time(found.get("Created")),
        started_at=_time(state.get("StartedAt")),
        finished_at=_time(state.get("FinishedAt")),
        restart_count=int(found.get("RestartCount") or 0),
        published_ports=_published(host, found.get("NetworkSettings") or {}),
        claims=None if owner or tried else identity.owner_of(labels),
        unasked=by_hand.unasked(host, found.get("NetworkSettings") or {}) if owner else (),
        settings=by_hand.settings(config) if owner else (),
    )


def secret_values(found: Json) -> tuple[tuple[str, str], ...]:
    """Env key and value of each secret a container of ours was made with. For hiding them, and for nothing else."""
    config = found["Config"]
    names = identity.secret_references(config.get("Labels") or {})
    pairs = (line.partition("=") for line in config.get("Env") or ())
    return tuple((name, value) for name, _, value in pairs if name in names)


def live_marks(found: Json, mark: Mark) -> dict[str, str]:
    """The mark of the value that each secret of a container has now, by env key. No value leaves here."""
    references = identity.secret_references(found["Config"].get("Labels") or {})
    return {name: mark(references[name], value) for name, value in secret_values(found)}


def _bare(name: str) -> str:
    return name.removeprefix("/")


def _time(text: str | None) -> str:
    return "" if text in {None, NEVER} else str(text)


def _arguments(found: "list[str] | str | None") -> tuple[str, ...] | None:
    if found is None:
        return None
    return (found,) if isinstance(found, str) else tuple(found)


def _env(lines: Iterable[str], secrets: Mapping[str, str]) -> tuple[tuple[str, EnvValue], ...]:
    pairs = (line.partition("=") for line in lines)
    return tuple((key, SecretRef(secrets[key]) if key in secrets else value) for key, _, value in pairs)


def _mounts(found: Iterable[Json]) -> tuple[Mount, ...]:
    binds = (item for item in found if item.get("Type") == "bind")
    mounts = (Mount(str(item["Source"]), str(item["Destination"]), read_only=not item.get("RW")) for item in binds)
    return tuple(sorted(mounts, key=lambda mount: mount.target))


def _device(found: Json) -> str:
    """The shortest form that means the same, as `docker run --device` takes it."""
    outside, inside = str(found["PathOnHost"]), str(found.get("PathInContainer") or found["PathOnHost"])
    permissions = str(found.get("CgroupPermissions") or "rwm")
    if permissions != "rwm":
        return f"{outside}:{inside}:{permissions}"
    return outside if inside == outside else f"{outside}:{inside}"


def _published(host: Json, network: Json) -> tuple[int, ...]:
    """The ports of the node it takes, or would take when it ran."""
    tables = (host.get("PortBindings") or {}, network.get("Ports") or {})
    bindings = (binding for table in tables for bindings in table.values() for binding in bindings or ())
    ports = (str(binding.get("HostPort", "")) for binding in bindings)
    return tuple(sorted({int(port) for port in ports if port.isdecimal() and port != "0"}))


def requested_gpus(host: Json) -> int:
    """How many GPUs were asked for when it was created: what we ask for, whatever else the engine's defaults give."""
    return min(sum(_requested(item) for item in host.get("DeviceRequests") or ()), ALL_GPUS)


def gpu_count(host: Json, config: Json) -> int:
    """How many GPUs a container of others may hold: by device requests, by device files, or by the older NVIDIA
    runtime's environment.
    """
    asked = requested_gpus(host)
    files = sum(bool(re.fullmatch(r"/dev/nvidia\d+", str(item["PathOnHost"]))) for item in host.get("Devices") or ())
    return min(asked or files or _by_runtime(host, config), ALL_GPUS)


def _requested(request: Json) -> int:
    kinds = {kind for group in request.get("Capabilities") or () for kind in group}
    names = [str(name) for name in request.get("DeviceIDs") or ()]
    if "gpu" not in kinds and request.get("Driver") not in {"nvidia", "cdi"}:
        return 0
    if names:
        return ALL_GPUS if any(name.endswith("=all") for name in names) else len(names)
    count = int(request.get("Count") or 0)
    return ALL_GPUS if count < 0 else count


def _by_runtime(host: Json, config: Json) -> int:
    if host.get("Runtime") != "nvidia":
        return 0
    prefix = "NVIDIA_VISIBLE_DEVICES="
    wanted = next((line.removeprefix(prefix) for line in config.get("Env") or () if line.startswith(prefix)), "")
    if wanted in {"", "void", "none"}:
        return 0
    return ALL_GPUS if wanted == "all" else len(wanted.split(","))


def images_from_list(
    entries: Iterable[Json], platform: str, runnable: Set[str] = frozenset()
) -> tuple[LocalImage, ...]:
    """The images of `/images/json?manifests=1`, of either store. `runnable`: ids of doubtful ones that can run."""
    return tuple(_image(entry, platform, str(entry["Id"]) in runnable) for entry in entries)


def doubtful(entries: Iterable[Json], platform: str, pulled: str | None = None) -> list[str]:
    """Ids of images that the containerd store calls incomplete, though they were pulled without an error.

    It fetches no layer whose unpacked form is there already from another image. Such an image runs, but is listed just
    like one whose layers are all missing. What tells them apart is that we pulled it: just now (`pulled`, a digest), or
    once, which is what our tag says.
    """
    return [
        str(entry["Id"])
        for entry in entries
        if (found := _manifests(entry, platform)) and not any(_is_whole(item) for item in found)
        if pulled == entry["Id"] or _is_kept(entry)
    ]


def _is_kept(entry: Json) -> bool:
    tag = f":{keep_tag(str(entry['Id']))}"
    return any(str(name).endswith(tag) for name in entry.get("RepoTags") or ())


keep_tag = identity.keep_tag


def _image(entry: Json, platform: str, is_runnable: bool) -> LocalImage:
    """With the containerd store there are `Manifests`, and only they tell whether the content is there."""
    digests = [text.rpartition("@")[2] for text in entry.get("RepoDigests") or () if "@" in text]
    names = tuple(name for name in entry.get("RepoTags") or () if name != "<none>:<none>")
    size_bytes = int(entry.get("Size") or 0)
    if not entry.get("Manifests"):
        return LocalImage(str(entry["Id"]), tuple(dict.fromkeys(digests)), names, size_bytes=size_bytes)
    usable = [item for item in _manifests(entry, platform) if is_runnable or _is_whole(item)]
    known = [str(entry["Id"]), *digests, *(str(item["ID"]) for item in usable)]
    complete = any(_is_whole(item) for item in usable)
    known = list(dict.fromkeys(known))
    return LocalImage(str(entry["Id"]), tuple(known), names, bool(usable), complete, size_bytes=size_bytes)


def _manifests(entry: Json, platform: str) -> list[Json]:
    """Its image manifests for this platform that are there themselves; an incomplete one may not say its platform."""
    images = (item for item in entry.get("Manifests") or () if item.get("Kind") == "image" and item.get("ImageData"))
    own = (item for item in images if platform_of(item["ImageData"].get("Platform") or {}) in {platform, "/"})
    return [item for item in own if int((item.get("Size") or {}).get("Content") or 0) > 0]


def _is_whole(manifest: Json) -> bool:
    """All its content is there, and unpacked."""
    return bool(manifest.get("Available")) and int((manifest["ImageData"].get("Size") or {}).get("Unpacked") or 0) > 0


def platform_of(found: Json) -> str:
    """`linux/arm64` of a platform object. The variant is left out: arm64 is v8 everywhere we run."""
    return f"{found.get('os', '')}/{found.get('architecture', '')}"


def matching(images: Iterable[LocalImage], pin: ImagePin) -> LocalImage | None:
    """The usable image with the content of `pin`, under whatever name."""
    return next((image for image in images if image.holds(pin)), None)
