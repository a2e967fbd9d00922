"""What the journal costs: an apply of 100 simulated gangs with the SQLite journal, against one with the memory store.

The simulated fleet runs in virtual time, so both are what the processor and the disk need for deciding and recording.
"""

import gc
import statistics
import tempfile
from pathlib import Path

import yaml

from bench.measure import Measured, seconds
from reconciler.core.outcome import Exit
from reconciler.fleet import Applied, Fleet, OpenStore
from reconciler.testing import SimImage, SimulatedFleet, run_simulated, sim_nodes
from reconciler.testing.llamacpp import QUESTION, llamacpp_behaviour
from state import MemoryStore, open_store

NAMES = ("journal_overhead_ratio",)
GANGS = 100
ROUNDS = 5
IMAGE = SimImage.named("ghcr.io/example/llamacpp", llamacpp_behaviour)


def measure() -> list[Measured]:
    """A fresh fleet and a fresh journal each time; the garbage of one is not collected in the time of another."""
    _timed(open_store, 1)  # the database library is loaded once in a process
    pairs = [(_timed(open_store), _timed(lambda location: MemoryStore())) for _ in range(ROUNDS)]
    ours_s, other_s = (statistics.median(pair[which] for pair in pairs) for which in (0, 1))
    return [Measured(NAMES[0], 1.3, "the memory store", ours_s, other_s, "ms")]


def _timed(store: OpenStore, gangs: int = GANGS) -> float:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "fleet.yaml"
        path.write_text(spec_text(gangs), encoding="utf-8")
        gc.collect()
        gc.disable()
        try:
            return seconds(lambda: apply(path, store, gangs))
        finally:
            gc.enable()


def apply(path: Path, store: OpenStore, count: int) -> Applied:
    """Boot all gangs. Raises `AssertionError` when one of them did not come up."""
    nodes = SimulatedFleet(sim_nodes(count), [IMAGE], seed=1)

    async def work() -> Applied:
        async with Fleet.load(path, lambda spec: nodes, store) as fleet:
            return await fleet.apply(fleet.plan(await fleet.observe()))

    applied: Applied = run_simulated(work(), seed=1)
    assert Exit.OK is applied.exit, applied.summary
    assert f"{count} booted" == applied.summary, applied.summary
    return applied


def spec_text(count: int) -> str:
    """A lane on each node."""
    configs = sim_nodes(count)
    names = [config.name for config in configs]
    probes = [{"chat": QUESTION, "expect": "Paris"}]
    lane = {"engine": "llamacpp", "image": IMAGE.reference, "model": "m", "nodes": 1, "health": {"probes": probes}}
    spec = {
        "fleet": "bench",
        "nodes": {config.name: _node(config.address) for config in configs},
        "models": {"m": {"path": "/srv/models/m.gguf"}},
        "clusters": {f"c-{name}": {"nodes": [name], "interface": "f0"} for name in names},
        "lanes": {f"l-{name}": lane for name in names},
        "placements": [{"lane": f"l-{name}", "cluster": f"c-{name}"} for name in names],
    }
    return yaml.safe_dump(spec, sort_keys=False)


def _node(address: str) -> dict[str, object]:
    interface = {"name": "eth0", "address": address}
    return {"ssh": {"host": address}, "platform": "linux/amd64", "interfaces": {"f0": interface}}
