"""Packages of Debian's next release, fetched and unpacked beside the system, which stays as it is.

apt runs with lists, sources and a package database of its own, on the mirror that the system itself uses.
"""

import functools
import os
import re
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from .cache import locked
from .config import cache_dir
from .shell import LabError, run

RELEASE = "forky"
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
FRESH_SECONDS = 24 * 3600
CONFIG = """\
Dir::State "{root}/state";
Dir::State::Lists "{root}/lists";
Dir::State::status "{root}/status";
Dir::Cache "{root}/cache";
Dir::Etc::SourceList "{root}/sources.list";
Dir::Etc::SourceParts "/dev/null";
Dir::Etc::Preferences "/dev/null";
Dir::Etc::PreferencesParts "/dev/null";
APT::Sandbox::User "root";
APT::Install-Recommends "false";
Acquire::Languages "none";
Acquire::Retries "3";
"""


@functools.cache
def architecture() -> str:
    """Debian's name of this machine's architecture, which is also Docker's for amd64 and arm64."""
    return run(["dpkg", "--print-architecture"]).stdout.strip()


def mirror() -> str:
    """The Debian mirror of this system."""
    shape = "$(CREATED_BY) $(REPO_URI) $(CODENAME) $(ORIGIN)"
    targets = [line.split() for line in run(["apt-get", "indextargets", "--format", shape]).stdout.splitlines()]
    found = [t[1] for t in targets if len(t) == 4 and t[0] == "Packages" and t[3] == "Debian" and "-" not in t[2]]
    if not found:
        raise LabError("no Debian mirror among this system's apt sources (run `apt-get update` once)")
    return found[0]


def root() -> Path:
    return cache_dir() / "apt"


def apt_env() -> dict[str, str]:
    return {**os.environ, "APT_CONFIG": str(root() / "apt.conf")}


def refresh() -> None:
    """Have the release's package lists, at most a day old."""
    stamp = root() / "stamp"
    with locked("apt"):
        if stamp.exists() and time.time() - stamp.stat().st_mtime < FRESH_SECONDS:
            return
        for folder in ("state", "lists/partial", "cache/archives/partial"):
            (root() / folder).mkdir(parents=True, exist_ok=True)
        signed = f"[signed-by={KEYRING}] " if KEYRING.exists() else ""
        (root() / "sources.list").write_text(f"deb {signed}{mirror()} {RELEASE} main\n")
        (root() / "status").touch()
        (root() / "apt.conf").write_text(CONFIG.format(root=root()))
        run(["apt-get", "-q", "update"], env=apt_env(), timeout=300)
        stamp.touch()


def closure(names: Sequence[str]) -> list[str]:
    """The packages and all that they need, as NAME=VERSION."""
    done = run(["apt-get", "-q", "-s", "install", *names], env=apt_env(), timeout=120)
    return [f"{name}={version}" for name, version in re.findall(r"^Inst (\S+) \((\S+)", done.stdout, re.MULTILINE)]


def download(pinned: Sequence[str], folder: Path) -> list[Path]:
    """Fetch exactly these packages."""
    folder.mkdir(parents=True, exist_ok=True)
    run(["apt-get", "-q", "download", *pinned], env=apt_env(), cwd=folder, timeout=600)
    return sorted(folder.glob("*.deb"))


def unpack(packages: Iterable[Path], folder: Path) -> None:
    """Lay the packages' files out, without their install scripts."""
    folder.mkdir(parents=True, exist_ok=True)
    for package in packages:
        run(["dpkg-deb", "-x", str(package), str(folder)], timeout=120)
