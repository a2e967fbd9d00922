"""A private PostgreSQL cluster: in a temporary folder, on a Unix socket only, by programs of a Debian package."""

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.lab import packages
from tests.lab.cache import locked

START_S = 60.0
USER = "fleet"
DATABASE = "postgres"
"""Every cluster has one of that name."""


def programs() -> Path | None:
    """The folder of the newest PostgreSQL programs here."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: float(path.parents[1].name))
    own = shutil.which("initdb")
    return found[-1].parent if found else Path(own).parent if own else None


def why_not() -> str | None:
    """Why there can be no cluster here, or nothing. Installs what is missing where that is possible."""
    if programs() is None and packages.unsupported() is None:
        with locked("packages"), packages.services_held():
            packages.install(["postgresql"])
    return None if programs() else "PostgreSQL is not installed, and without root on Debian it cannot be"


@contextmanager
def cluster() -> Iterator[Path]:
    """A running cluster; the folder of its socket."""
    folder = Path(tempfile.mkdtemp(prefix="fleet-pg-"))
    user = _user(folder)
    try:
        data, bin_ = folder / "data", programs()
        assert bin_ is not None
        made: list[str | Path] = [
            bin_ / "initdb",
            "-D",
            data,
            "-U",
            USER,
            "-A",
            "trust",
            "-E",
            "UTF8",
            "--no-locale",
            "--no-sync",
        ]
        subprocess.run(made, user=user, group=_group(user), check=True, capture_output=True, cwd=folder)
        command: list[str | Path] = [
            bin_ / "postgres",
            "-D",
            data,
            "-k",
            folder,
            "-c",
            "listen_addresses=",
            "-c",
            "fsync=off",
        ]
        with (folder / "log").open("w") as log:
            server = subprocess.Popen(command, user=user, group=_group(user), stdout=log, stderr=log, cwd=folder)
        try:
            _await(server, bin_, folder)
            yield folder
        finally:
            server.send_signal(signal.SIGINT)  # ends sessions, then itself
            server.wait(START_S)
    finally:
        shutil.rmtree(folder)


def _user(folder: Path) -> int | None:
    """PostgreSQL does not run as root: the folder is given to somebody else."""
    if os.geteuid() != 0:
        return None
    names = {entry.pw_name for entry in pwd.getpwall()}
    found = pwd.getpwnam("postgres" if "postgres" in names else "nobody")
    os.chown(folder, found.pw_uid, found.pw_gid)
    return found.pw_uid


def _group(user: int | None) -> int | None:
    return None if user is None else pwd.getpwuid(user).pw_gid


def _await(server: "subprocess.Popen[bytes]", bin_: Path, folder: Path) -> None:
    deadline = time.monotonic() + START_S
    while subprocess.run([bin_ / "pg_isready", "-q", "-h", folder], check=False).returncode != 0:
        said = (folder / "log").read_text()
        assert server.poll() is None, said
        assert time.monotonic() < deadline, said
        time.sleep(0.05)
