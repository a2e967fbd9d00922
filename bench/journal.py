"""What the journal costs: an apply of a hundred simulated gangs, recorded in SQLite and in memory."""

import asyncio
import tempfile
from dataclasses import replace
from pathlib import Path

import yaml

from bench.measure import Measured, compare
from reconciler.core.outcome import Exit
from reconciler.fleet import Fleet
from reconciler.testing import SimImage, SimulatedFleet, run_simulated, sim_nodes
from reconciler.testing.llamacpp import llamacpp_behaviour
from state import MemoryStore, open_store

NAMES = ("journal_overhead_ratio",)
GOAL = 1.3
GANGS = 100
ROUNDS = 5


def measure() -> list[Measured]:
    """Both with fsync as in life, on the disk of the temporary folder."""
    baseline = "the same apply with the journal in memory"
    return [compare(NAMES[0], GOAL, baseline, lambda: apply(in_memory=False), lambda: apply(in_memory=True), ROUNDS)]


def apply(*, in_memory: bool) -> None:
    """Boot a hundred lanes, each on a node of its own."""
    image = SimImage.named("ghcr.io/example/llamacpp", llamacpp_behaviour)
    configs = [replace(config, name=f"n{number}") for number, config in enumerate(sim_nodes(GANGS))]
    nodes = SimulatedFleet(configs, [image], seed=1)
    store = MemoryStore() if in_memory else None
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "fleet.yaml"
        path.write_text(_spec(image.reference, [config.address for config in configs], configs[0].platform))

        async def work() -> None:
            async with Fleet.load(path, lambda spec: nodes, lambda place: store or open_store(place)) as fleet:
                applied = await fleet.apply(fleet.plan(await fleet.observe()), stop=asyncio.Event())
                if applied.exit is not Exit.OK:
                    raise RuntimeError(applied.summary)

        run_simulated(work(), seed=1)


def _spec(image: str, addresses: list[str], platform: str) -> str:
    lane = {
        "engine": "llamacpp",
        "image": image,
        "model": "m",
        "mounts": [{"source": "{paths.models}", "target": "/srv/models"}],
        "health": {"boot": "2m"},
    }
    names = range(len(addresses))
    return yaml.safe_dump(
        {
            "fleet": "bench",
            "nodes": {
                f"n{number}": {
                    "ssh": {"host": address, "user": "ops"},
                    "platform": platform,
                    "interfaces": {"f0": {"name": "eth0", "address": address}},
                    "paths": {"models": "/srv/models"},
                }
                for number, address in enumerate(addresses)
            },
            "clusters": {f"c{number}": {"nodes": [f"n{number}"], "interface": "f0"} for number in names},
            "models": {"m": {"path": "{paths.models}/good.gguf"}},
            "lanes": {"l": lane},
            "placements": [{"lane": "l", "cluster": f"c{number}"} for number in names],
        }
    )
