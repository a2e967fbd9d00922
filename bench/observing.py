"""`python -m bench.observing fleet|bare FOLDER`: reads the nodes of `bench.played_nodes`, and says what it took.

`fleet` is `Fleet.observe`, with a look at what came; `bare` is a connection of asyncssh each, and one command on it.
Prints JSON: CPU seconds of this process for it, without imports, and its peak memory in bytes.
"""

import asyncio
import gc
import json
import sys
import time
from pathlib import Path

import asyncssh

from bench.measure import peak_bytes
from bench.played_nodes import PlayedNode
from reconciler.cli.main import OBJECTS_UNCOLLECTED
from reconciler.core.observed import NodeFacts, Observed
from reconciler.fleet import Fleet
from reconciler.nodes import ssh_node

__all__ = ["ssh_node"]  # imported before the clock starts, as asyncssh is

PATIENCE_S = 600.0
"""Two hundred at once on a busy machine: what is measured is work, not time."""


async def _observe(folder: Path) -> float:
    async with Fleet.load(folder / "fleet.yaml") as fleet:
        began_s = time.process_time()
        observed = await fleet.observe(PATIENCE_S)
        took_s = time.process_time() - began_s
        insist_on_all(observed, len(fleet.desired.nodes))
        return took_s


def insist_on_all(observed: Observed, count: int) -> None:
    """Every node was read, and told what is its own. Raises `AssertionError`."""
    assert count == len(observed.nodes)
    for number in range(count):
        played, facts = PlayedNode(number), observed.nodes[f"n{number}"]
        assert isinstance(facts, NodeFacts), facts
        told = facts.boot_id, facts.store, [item.id for item in facts.containers], len(facts.images)
        assert (played.boot_id, played.store, [played.container_id], 1) == told, told


async def _bare(folder: Path) -> float:
    ports = json.loads((folder / "ports.json").read_text(encoding="utf-8"))
    known = asyncssh.import_known_hosts(f"* {(folder / 'host.pub').read_text(encoding='utf-8')}")
    began_s = time.process_time()
    connections = await asyncio.gather(*(_connect_and_run(port, known, folder) for port in ports))
    took_s = time.process_time() - began_s
    for connection in connections:
        connection.abort()
    return took_s


async def _connect_and_run(port: int, known: asyncssh.SSHKnownHosts, folder: Path) -> asyncssh.SSHClientConnection:
    connection = await asyncssh.connect(
        "127.0.0.1", port, username="root", config=None, known_hosts=known, client_keys=[str(folder / "client")],
        login_timeout=PATIENCE_S,
    )  # fmt: skip
    await connection.run("true", check=True)
    return connection


def main() -> None:
    """Measure once."""
    gc.set_threshold(OBJECTS_UNCOLLECTED)  # both as `fleet` does, so that connections alone are compared
    what, folder = sys.argv[1], Path(sys.argv[2])
    cpu_s = asyncio.run(_observe(folder) if what == "fleet" else _bare(folder))
    print(json.dumps({"cpu_s": cpu_s, "rss_bytes": peak_bytes("self")}))


if __name__ == "__main__":
    main()
