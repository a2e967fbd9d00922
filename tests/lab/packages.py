"""The Debian packages that the lab stands on, installed without starting a single service."""

import os
import platform
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from .cache import locked
from .shell import LabError, run

PACKAGES = {
    "docker.io": "/usr/sbin/dockerd",
    "docker-registry": "/usr/bin/docker-registry",
    "e2fsprogs": "/sbin/mkfs.ext4",
    "iproute2": "/sbin/ip",
    "iptables": "/usr/sbin/iptables",
    "openssh-client": "/usr/bin/ssh-keygen",
    "openssh-server": "/usr/sbin/sshd",
    "rsync": "/usr/bin/rsync",
    "skopeo": "/usr/bin/skopeo",
    "tini": "/usr/bin/tini",
    "util-linux": "/usr/bin/unshare",
}
POLICY = Path("/usr/sbin/policy-rc.d")


def unsupported() -> str | None:
    """Why this machine cannot carry a lab, or nothing."""
    if sys.platform != "linux":
        return f"the lab needs Linux: it is made of kernel namespaces (this is {platform.system()})"
    if os.geteuid() != 0:
        return "the lab needs root: it makes network namespaces, mounts and Docker daemons"
    if not Path("/usr/bin/apt-get").exists():
        return "the lab needs Debian: it takes its Docker, sshd and engine from Debian packages"
    return None


def require_supported() -> None:
    if reason := unsupported():
        raise LabError(reason)


def missing() -> list[str]:
    return sorted(name for name, program in PACKAGES.items() if not Path(program).exists())


def ensure_packages() -> list[str]:
    """Install what is missing and say what it was."""
    with locked("packages"):
        if names := missing():
            with services_held():
                install(names)
        if still := missing():
            raise LabError(f"installed, yet not there: {', '.join(PACKAGES[name] for name in still)}")
    return names


def install(names: Sequence[str]) -> None:
    """Install, with a fresh package list only when the one at hand does not serve."""
    if apt_get("install", *names):
        return
    apt_get("update")
    if not apt_get("install", *names):
        raise LabError(f"apt-get install {' '.join(names)} failed; run it by hand to see why")


def apt_get(verb: str, *names: str) -> bool:
    argv = ["apt-get", "-y", "-q", "-o", "DPkg::Lock::Timeout=300", "--no-install-recommends", verb, *names]
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    return run(argv, timeout=600, check=False, env=env).returncode == 0


@contextmanager
def services_held() -> Iterator[None]:
    """Keep package scripts from starting a system-wide dockerd, sshd or registry (Debian's own switch for this)."""
    if POLICY.exists():
        yield
        return
    POLICY.write_text("#!/bin/sh\nexit 101\n")
    POLICY.chmod(0o755)
    try:
        yield
    finally:
        POLICY.unlink()
