"""What looking costs: a whole `fleet plan` with nothing to do, against four parallel `ssh NODE docker ps -a`."""

import subprocess
import sys
import tempfile
from pathlib import Path

from bench.measure import Measured, compare
from tests.lab import Lab
from tests.lab.shell import Progress
from tests.lab.specfile import PAIR_AND_SOLO, for_lab, write

NAMES = ("plan_noop_vs_ssh_docker_ps",)
LAB, SUBNET = "fleetbench", "10.85.0.0/24"


def measure() -> list[Measured]:
    """On a lab of its own, with two lanes running. Needs root on Linux."""
    lab = Lab.up(LAB, SUBNET, 4, progress=Progress())
    try:
        with tempfile.TemporaryDirectory() as folder:
            spec = write(Path(folder), for_lab(lab), PAIR_AND_SOLO)
            fleet = str(Path(sys.executable).with_name("fleet"))
            subprocess.run([fleet, "apply", "--yes", "--file", spec], check=True, stdout=subprocess.DEVNULL)
            plan = [fleet, "plan", "--detailed-exitcode", "--file", str(spec)]
            found = compare(
                NAMES[0], 2.0, "four parallel `ssh NODE docker ps -a`", lambda: _run(plan), lambda: _ssh_all(lab), 15
            )
            return [found]
    finally:
        lab.down()


def _run(words: list[str]) -> None:
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)


def _ssh_all(lab: Lab) -> None:
    ssh = ["ssh", "-F", str(lab.ssh_config)]
    running = [
        subprocess.Popen([*ssh, node, "docker", "ps", "-a"], stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
        for node in lab.nodes
    ]
    for process in running:
        assert process.wait() == 0
