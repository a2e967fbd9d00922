"""The second Docker generation: next-release binaries in a folder, put first on a node's path."""

import shutil
import sys
from pathlib import Path

from . import debs
from .cache import artefact, source

PACKAGES = ["docker.io", "docker-cli", "containerd", "tini-static"]
PROGRAMS = [
    "usr/sbin/dockerd",
    "usr/sbin/docker-proxy",
    "usr/bin/docker",
    "usr/bin/tini-static",
    "usr/bin/containerd",
    "usr/bin/containerd-shim-runc-v2",
    "usr/bin/ctr",
]


def ensure_runtime() -> Path:
    """The folder with dockerd, its client and containerd; `runc` is the system's and serves both generations."""
    return artefact("runtimes", [debs.architecture(), *source(debs, sys.modules[__name__])], build)


def build(folder: Path) -> None:
    debs.refresh()
    packages = debs.download(PACKAGES, folder / "debs")
    debs.unpack(packages, folder / "root")
    for program in PROGRAMS:
        (folder / "root" / program).rename(folder / Path(program).name)
    (folder / "docker-init").symlink_to("tini-static")
    (folder / "versions").write_text("".join(f"{package.name}\n" for package in packages))
    shutil.rmtree(folder / "debs")
    shutil.rmtree(folder / "root")
