"""What a node's image store is, read once."""

from dataclasses import dataclass
from typing import Literal

from reconciler.nodes.docker_engine import DockerEngine
from reconciler.nodes.ssh_observer import is_containerd, platform_of


@dataclass(frozen=True)
class Store:
    """Kind and place of a node's image store, its Docker's version and its platform ("linux/arm64")."""

    kind: Literal["classic", "containerd"]
    docker_version: str
    docker_root: str
    platform: str


async def store_of(engine: DockerEngine) -> Store:
    """The store of the engine's node. Raises `NodeError`."""
    info = await engine.get("/info")
    kind: Literal["classic", "containerd"] = "containerd" if is_containerd(info) else "classic"
    return Store(kind, str(info["ServerVersion"]), str(info["DockerRootDir"]), platform_of(info))
