"""Reads one node: the Docker Engine's answers and the host's facts, all at once."""

import asyncio
import time
from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from reconciler.core.image_defaults import ImageDefaults
from reconciler.core.observed import RUNNING_STATES, Container, LocalImage, NodeFacts
from reconciler.nodes import by_hand, facts, host_facts, inspect
from reconciler.nodes.docker_engine import DockerEngine
from reconciler.nodes.docker_line import DockerLine
from reconciler.nodes.errors import ErrorKind, NodeError
from reconciler.nodes.local_images import local_images
from reconciler.nodes.ssh import SshSession

Json = Mapping[str, Any]

USUAL_ROOT = "/var/lib/docker"
SYSTEM_CONTAINERD = "/var/lib/containerd"
READ_S = 20.0

ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
"""The kernel's names -> those of image manifests. All others are the same, or nothing we run on."""


class SshObserver:
    """Two round trips: the readings and the list of containers, then the containers that matter and the images of ours
    that run, all at once."""

    def __init__(self, session: SshSession, engine: DockerEngine) -> None:
        self._session = session
        self._engine = engine

    async def observe(self, paths: Collection[str] = ()) -> NodeFacts:
        """All facts of the node, and which of `paths` are not there. Changes nothing."""
        try:
            async with DockerLine(self._engine) as line, asyncio.TaskGroup() as group:
                info = group.create_task(line.get("/info"))
                containers = group.create_task(_containers(line))
                images = group.create_task(local_images(line, partial(_platform, info)))
                host = group.create_task(self._host(*(f"path:{path}" for path in sorted(paths))))
        except ExceptionGroup as errors:
            raise errors.exceptions[0] from None
        return replace(
            await self._facts(info.result(), images.result(), host.result()),
            containers=containers.result()[0],
            defaults=containers.result()[1],
        )

    async def _host(self, *words: str) -> facts.HostFacts:
        sent_s = time.time()
        output = await self._session.run_script(facts.SCRIPT, READ_S, *words)
        received_s = time.time()
        found = facts.parse(output)
        if found is None:
            message = f"the shell of {self._session.target.login} on {self._session.target.host} ran no script"
            raise NodeError(ErrorKind.REFUSED, message, f"it answered {output.strip()[:200]!r}")
        return replace(found, host=replace(found.host, clock=host_facts.clock(found.epoch_s, sent_s, received_s)))

    async def _facts(self, info: Json, images: tuple[LocalImage, ...], host: facts.HostFacts) -> NodeFacts:
        return NodeFacts(
            node=self._session.target.name,
            platform=platform_of(info),
            boot_id=host.boot_id,
            store="containerd" if is_containerd(info) else "classic",
            docker_version=str(info["ServerVersion"]),
            docker_root=str(info["DockerRootDir"]),
            disk_free_bytes=await self._disk_free(info, host),
            memory_available_bytes=host.memory_available_bytes,
            memory_total_bytes=host.memory_total_bytes,
            images=images,
            listeners=host.listeners,
            gpus=host.gpus,
            missing_paths=host.missing_paths,
            has_python=host.has_python,
            host=replace(host.host, gpu_support=host_facts.gpu_support(info, host.host)),
        )

    async def _disk_free(self, info: Json, host: facts.HostFacts) -> int | None:
        """Where the images go. Only an unusual Docker root costs another look."""
        places = [str(info["DockerRootDir"])]
        if is_containerd(info) and uses_system_containerd(info):
            places.append(SYSTEM_CONTAINERD)
        if any(place not in host.disk_free for place in places[:1]):
            host = await self._host(*(f"disk:{place}" for place in places))
        return min((host.disk_free[place] for place in places if place in host.disk_free), default=None)


async def _containers(line: DockerLine) -> tuple[tuple[Container, ...], tuple[ImageDefaults, ...]]:
    """The containers, and what the images of ours that run give them."""
    entries = await line.get("/containers/json", all="1")
    ours = (one for one in entries if one.get("State") in RUNNING_STATES and inspect.is_ours(one.get("Labels")))
    used = dict.fromkeys(str(one["ImageID"]) for one in ours)
    found, given = await asyncio.gather(
        asyncio.gather(*(_container(line, entry) for entry in entries)),
        asyncio.gather(*(_defaults(line, image_id) for image_id in used)),
    )
    return tuple(item for item in found if item is not None), tuple(item for item in given if item is not None)


async def _defaults(line: DockerLine, image_id: str) -> ImageDefaults | None:
    """None for an image that the store does not have, or cannot tell of: only what a hand added stays unknown."""
    try:
        return by_hand.image_defaults(image_id, await line.get(f"/images/{image_id}/json"))
    except NodeError as error:
        if error.is_transport:
            raise
        return None


async def _container(line: DockerLine, entry: Json) -> Container | None:
    """Ours and whatever runs are looked at closely; None for one that went away meanwhile."""
    if not inspect.is_ours(entry.get("Labels")) and entry.get("State") not in RUNNING_STATES:
        return inspect.container_from_list(entry)
    try:
        return inspect.container_from_inspect(await line.get(f"/containers/{entry['Id']}/json"))
    except NodeError as error:
        if error.kind is ErrorKind.NOT_FOUND:
            return None
        raise


async def _platform(info: "asyncio.Task[Json]") -> str:
    return platform_of(await info)


def platform_of(info: Json) -> str:
    """The node's platform as image manifests name it."""
    machine = str(info.get("Architecture", ""))
    return f"{info.get('OSType', 'linux')}/{ARCHITECTURES.get(machine, machine)}"


def is_containerd(info: Json) -> bool:
    """Whether images are kept by containerd, where an image's id is its manifest's or index's digest."""
    return ["driver-type", "io.containerd.snapshotter.v1"] in (info.get("DriverStatus") or ())


def uses_system_containerd(info: Json) -> bool:
    """Whether containerd is a service of its own, with a root of its own, and not Docker's child."""
    address = str((info.get("Containerd") or {}).get("Address", ""))
    return bool(address) and "/docker/" not in address
