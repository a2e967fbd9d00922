"""What rendering costs: 1,000 vLLM lanes of four ranks each to containers, against loading their spec."""

import tempfile
from pathlib import Path

import specs
from bench.measure import Measured, compare
from bench.world import LANE_NODES, big_fleet_text
from reconciler.engines import RULES, desired_fleet

NAMES = ("render_1000_lanes_vs_load",)
LANES = 1000
ROUNDS = 3
"""A load takes seconds."""


def text() -> str:
    """The big fleet with lanes of vLLM: every rank with the flags of several nodes and JSON among its arguments."""
    engine = f"engine: vllm, parallel: {{tensor: {LANE_NODES}}}"
    args = "args: {max-model-len: 4096, compilation-config: {cudagraph_mode: FULL, cudagraph_capture_sizes: [1, 2, 4]}}"
    of_llamacpp = big_fleet_text(LANES * LANE_NODES)
    return of_llamacpp.replace("engine: llamacpp", engine).replace("args: {ctx-size: 4096}", args)


def measure() -> list[Measured]:
    """Loading has the rules of the engines in it, as every command does."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "fleet.yaml"
        path.write_text(text(), encoding="utf-8")
        spec = specs.load(path, RULES)
        assert len(desired_fleet(spec).gangs) == LANES
        return [
            compare(
                NAMES[0],
                1.0,
                "specs.load of the same lanes",
                lambda: desired_fleet(spec),
                lambda: specs.load(path, RULES),
                ROUNDS,
            )
        ]
