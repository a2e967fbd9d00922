"""`reconciler.Fleet` as a controller of the simulation: the real product, from planning to journal."""

import asyncio
import functools
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import specs
from reconciler.core.desired import Desired
from reconciler.core.events import Event, RunStarted
from reconciler.core.exits import Exit
from reconciler.core.plan import Plan, plan_json
from reconciler.fleet import Fleet
from reconciler.history import Recorded
from reconciler.holds import withheld
from reconciler.nodes import protocols
from reconciler.nodes.errors import NodeError
from reconciler.testing.simulation import Ending
from reconciler.testing.simulation.cast import SECRET, TOKEN
from state import MemoryStore

TEXT = """\
fleet: simulated
nodes: {n1: {ssh: {host: 10.0.0.1}, platform: linux/amd64}}
clusters: {one: {nodes: [n1], port: 30000}}
lanes: {}
placements: []
"""

os.environ["FLEET_SECRET_KEY_FILE"] = str(Path(tempfile.gettempdir()) / f"fleet-simulated-{os.getuid()}.key")
os.environ[TOKEN.secret.removeprefix("env:")] = SECRET


@functools.cache
def base() -> specs.Spec:
    """A spec as small as can be: what is wanted comes from the scenario."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "fleet.yaml"
        path.write_text(TEXT, encoding="utf-8")
        return specs.load(path)


class FleetController:
    """Plans and applies with `reconciler.Fleet`, as `fleet apply --yes` does."""

    has_leases = True

    def __init__(self) -> None:
        self.store = MemoryStore()

    def fleet(self, nodes: protocols.Fleet, wants: Desired) -> Fleet:
        return Fleet(base(), wants, nodes, lambda folder: self.store)

    async def apply(
        self, nodes: protocols.Fleet, wants: Desired, on_plan: Callable[[Plan], None], stop: asyncio.Event
    ) -> Ending:
        said: list[Event] = []
        async with self.fleet(nodes, wants) as fleet:
            plan = fleet.plan(await fleet.observe(), allow_empty=True)
            plan = withheld(plan, Recorded((), self.store.quarantined()))
            on_plan(plan)
            try:
                applied = await fleet.apply(plan, said.append, stop)
            except NodeError as error:  # a node that has no lease to give: nothing was begun
                return Ending(int(Exit.ERROR), error.message)

        def texts() -> tuple[str, ...]:
            events = (repr(event) for event in said if not isinstance(event, RunStarted))
            return plan_json(plan), repr(applied.failures), repr(self.store.snapshot()), *events

        failures = (f"{failure.step.id} {failure.status}: {failure.detail}" for failure in applied.failures)
        return Ending(int(applied.exit), "; ".join((applied.summary.replace("\n", "; "), *failures)), texts)

    async def plan(self, nodes: protocols.Fleet, wants: Desired) -> Plan:
        async with self.fleet(nodes, wants) as fleet:
            return fleet.plan(await fleet.observe(), allow_empty=True)

    def is_announced(self, node: str) -> bool:
        return any(entry.node == node for entry in self.store.open_entries())

    def forgive(self) -> None:
        for item in self.store.quarantined():
            self.store.lift(item.gang, None)

    def forget(self) -> None:
        self.store = MemoryStore()
