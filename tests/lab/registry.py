"""The lab's registry: on the controller's loopback, where no node can reach it but through an SSH remote forward."""

import functools
import json
import shutil
import socket
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from . import procs
from .image import BuiltImage, ImageSet
from .shell import LabError, run, side_by_side, tail_of, wait_until


@dataclass(frozen=True)
class Registry:
    """A running registry, by its folder and port."""

    folder: Path
    port: int

    @property
    def endpoint(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def record(self) -> Path:
        return self.folder / "process"

    @property
    def alive(self) -> bool:
        return procs.recorded(self.record) is not None and answers(self.endpoint)

    def reference(self, image: BuiltImage) -> str:
        return f"{self.endpoint}/fleet-lab/{image.name}@{image.digest}"

    def start(self) -> None:
        """Start, or start again, on the storage that is there."""
        self.folder.mkdir(parents=True, exist_ok=True)
        config = self.folder / "config.yml"
        config.write_text(json.dumps(self.config(self.endpoint), indent=2))  # JSON is YAML
        log = self.folder / "log"
        procs.spawn(["docker-registry", "serve", str(config)], record=self.record, log=log)
        wait_until("the registry", lambda: answers(self.endpoint), seconds=15, detail=lambda: tail_of(log))

    def stop(self) -> None:
        procs.end(self.record)

    def config(self, address: str) -> dict[str, object]:
        """The settings of a registry at `address` with this storage."""
        return {
            "version": "0.1",
            "log": {"level": "warn"},
            "storage": {"filesystem": {"rootdirectory": str(self.folder / "storage")}, "delete": {"enabled": True}},
            "http": {"addr": address},
        }


def push(registry: Registry, images: ImageSet) -> None:
    """Copy the images in as they are, then prove that each is served under its digest."""
    side_by_side(functools.partial(push_one, registry, images.layout, image) for image in images.images)


def push_one(registry: Registry, layout: Path, image: BuiltImage) -> None:
    target = f"docker://{registry.endpoint}/fleet-lab/{image.name}:1"
    argv = ["skopeo", "--insecure-policy", "copy", "-q", "--all", "--preserve-digests", "--dest-tls-verify=false"]
    run([*argv, f"oci:{layout}:{image.name}", target], timeout=120)
    if (served := served_digest(registry.endpoint, f"fleet-lab/{image.name}")) != image.digest:
        raise LabError(f"the registry serves {image.name} as {served}, built was {image.digest}")


def served_digest(endpoint: str, name: str, tag: str = "1") -> str | None:
    accept = "application/vnd.oci.image.manifest.v1+json, application/vnd.oci.image.index.v1+json"
    url = f"http://{endpoint}/v2/{name}/manifests/{tag}"
    request = urllib.request.Request(url, headers={"Accept": accept}, method="HEAD")
    with direct().open(request, timeout=10) as answer:
        return str(answer.headers["Docker-Content-Digest"])


def direct() -> urllib.request.OpenerDirector:
    """No proxy between the lab and itself, whatever the environment says."""
    return urllib.request.build_opener(urllib.request.ProxyHandler({}))


def answers(endpoint: str) -> bool:
    try:
        with direct().open(f"http://{endpoint}/v2/", timeout=2) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def free_port(favourite: int) -> int:
    """The favourite, unless someone has it."""
    for wanted in (favourite, 0):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", wanted))
            except OSError:
                continue
            return int(probe.getsockname()[1])
    raise LabError("no free port on the loopback interface")


def remove(folder: Path) -> None:
    """End the registry of whatever run and forget its storage."""
    procs.end(folder / "process")
    shutil.rmtree(folder, ignore_errors=True)
