"""How long a dead worker goes unseen: from its kill to a `fleet status` that says degraded, its own time included."""

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.measure import Measured
from tests.lab import Lab
from tests.lab.shell import Progress
from tests.lab.specfile import PAIR_AND_SOLO, for_lab, write

NAMES = ("health_detect_dead_worker_s",)
LAB, SUBNET = "fleetbench", "10.85.0.0/24"
ROUNDS = 5
ALLOWED_S = 5.0
PATIENCE_S = 60.0
WORKER, NODE, LANE = "fleet-pair-r1", "node2", "pair"


def measure() -> list[Measured]:
    """On a lab of its own; the head of the lane goes on answering 200. Needs root on Linux."""
    lab = Lab.up(LAB, SUBNET, 4, progress=Progress())
    try:
        with tempfile.TemporaryDirectory() as folder:
            spec = write(Path(folder), for_lab(lab), PAIR_AND_SOLO)
            took_s = [_seen_after_s(lab, spec) for _ in range(ROUNDS)]
    finally:
        lab.down()
    return [Measured(NAMES[0], 1.0, "5 s", statistics.median(took_s), ALLOWED_S, "ms")]


def _seen_after_s(lab: Lab, spec: Path) -> float:
    """One round: the lane serves, its worker is killed, and its status is asked for until it says so."""
    _fleet("apply", "--yes", "--file", str(spec))
    assert _health(spec) == "healthy"
    worker = lab.nodes[NODE].docker("ps", "--quiet", "--filter", f"name={WORKER}").strip()
    began_s = time.perf_counter()
    lab.nodes[NODE].docker("kill", worker)
    while (health := _health(spec)) != "degraded":
        assert time.perf_counter() - began_s < PATIENCE_S, health
    return time.perf_counter() - began_s


def _health(spec: Path) -> str:
    lanes = json.loads(_fleet("status", "--json", "--file", str(spec)))["lanes"]
    return str(next(item["health"] for item in lanes if item["lane"] == LANE))


def _fleet(*words: str) -> str:
    fleet = str(Path(sys.executable).with_name("fleet"))
    return subprocess.run([fleet, *words], check=True, stdout=subprocess.PIPE, text=True).stdout
