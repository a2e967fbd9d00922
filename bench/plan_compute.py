"""What planning itself costs: 1,000 nodes and 250 lanes, against loading the spec of that fleet."""

import tempfile
from pathlib import Path

import specs
from bench.measure import Measured, compare
from bench.world import big_fleet_text, observed_of
from reconciler.core.planner import make_plan
from reconciler.engines import desired_fleet

NAMES = ("plan_compute_1000_nodes_vs_load",)
NODES = 1000


def measure() -> list[Measured]:
    """A third of the lanes runs as wanted, a third has to be replaced, a third is missing."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "fleet.yaml"
        path.write_text(big_fleet_text(NODES), encoding="utf-8")
        desired = desired_fleet(specs.load(path))
        observed = observed_of(desired)
        assert make_plan(desired, observed).steps
        found = compare(
            NAMES[0],
            1.0,
            "specs.load of the same fleet",
            lambda: make_plan(desired, observed),
            lambda: specs.load(path),
        )
        return [found]
