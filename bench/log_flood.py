"""What a lane that floods its log costs who looks: `fleet status` of it, against one of a lane that says nothing.

Both run all the time, so that the machine is as busy for the one as for the other, and the two are looked at in turn.
"""

import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

from bench.measure import Measured, compare
from tests.lab import Lab
from tests.lab.fleet_cli import FLEET, Desk, desk
from tests.lab.shell import Progress

NAMES = ("log_flood_status_vs_quiet",)
LAB, SUBNET = "fleetbench", "10.85.0.0/24"
ENGINE = Path(__file__).parents[1] / "tests/lab/faulty_engine.sh"
ROUNDS = 11


def measure() -> list[Measured]:
    """On a lab of its own. Needs root on Linux."""
    lab = Lab.up(LAB, SUBNET, 4, progress=Progress())
    try:
        lab.reset()
        lab.preload("tiny", ["node3", "node4"])
        with tempfile.TemporaryDirectory() as made:
            flood, quiet = (
                _looks_at(lab, Path(made), node, mode) for node, mode in (("node3", "flood"), ("node4", "quiet"))
            )
            return [compare(NAMES[0], 1.5, "the same of a lane that logs nothing", flood, quiet, ROUNDS)]
    finally:
        lab.down()


def _looks_at(lab: Lab, folder: Path, node: str, mode: str) -> Callable[[], object]:
    """A lane in this mode on this node, and the look at it."""
    shutil.copy(ENGINE, lab.nodes[node].disk / "srv/models")
    (folder / mode).mkdir()
    made = desk(lab, folder / mode)
    made.edit("inventory.yaml", lambda content: content["clusters"]["single-3"].update(nodes=[node]))
    argv = ["sh", f"/srv/models/{ENGINE.name}", mode, "{port}"]
    mounts = [{"source": "{paths.models}", "target": "/srv/models"}]
    made.custom(mode, "", argv=argv, mounts=mounts, health={"boot": "60s"}, served_name="faulty")
    made.place((mode, "single-3"))
    made.edit("fleet.yaml", lambda content: content.update(fleet=mode))  # or one spec would not want the other's lane
    made.apply()
    return lambda: _status(made)


def _status(made: Desk) -> None:
    shown = subprocess.run([FLEET, "status"], cwd=made.folder, check=True, capture_output=True, text=True)
    assert "healthy" in shown.stdout, shown.stdout
