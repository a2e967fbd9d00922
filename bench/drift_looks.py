"""What a report of drift costs: `fleet drift` with nothing to find, against `fleet plan` with nothing to do."""

import subprocess
import tempfile
from pathlib import Path

from bench.measure import Measured, compare
from tests.lab import Lab
from tests.lab.fleet_cli import FLEET
from tests.lab.shell import Progress
from tests.lab.specfile import PAIR_AND_SOLO, for_lab, write

NAMES = ("drift_4_nodes_vs_plan_noop",)
LAB, SUBNET = "fleetbench", "10.85.0.0/24"
ROUNDS = 15


def measure() -> list[Measured]:
    """On a lab of its own, with two lanes running. Needs root on Linux."""
    lab = Lab.up(LAB, SUBNET, 4, progress=Progress())
    try:
        lab.reset()
        with tempfile.TemporaryDirectory() as folder:
            spec = str(write(Path(folder), for_lab(lab), PAIR_AND_SOLO))
            _fleet("apply", "--yes", "--file", spec)
            baseline = "`fleet plan` with nothing to do, of the same fleet"
            looks = (
                lambda: _fleet("drift", "--file", spec),
                lambda: _fleet("plan", "--detailed-exitcode", "--file", spec),
            )
            return [compare(NAMES[0], 1.3, baseline, *looks, ROUNDS)]
    finally:
        lab.down()


def _fleet(*words: str) -> None:
    """Both end with 0 only where there is nothing to say."""
    subprocess.run([FLEET, *words], check=True, stdout=subprocess.DEVNULL)
