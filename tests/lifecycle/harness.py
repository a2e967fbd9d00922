"""A simulated fleet with a spec, for stories told in a few lines."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from reconciler.core.events import Event
from reconciler.core.plan import Plan
from reconciler.core.preflight import SUFFIX
from reconciler.core.status import FleetStatus
from reconciler.core.sync import make_sync_plan, nodes_to_sync
from reconciler.fleet import Applied, Fleet
from reconciler.testing import Behaviour, ControllerKilled, SimImage, SimulatedFleet, run_simulated, sim_nodes
from reconciler.testing.images import ACCEPTS, Decides
from reconciler.testing.llamacpp import llamacpp_behaviour
from state import Location, Quarantine, Store, open_store
from tests.lab.specfile import PAIR_AND_SOLO, QUAD, Inventory, write

Placements = tuple[tuple[str, str], ...]
STORES: tuple[Literal["classic", "containerd"], ...] = ("classic", "classic", "containerd", "containerd")
NAMES = ("node1", "node2", "node3", "node4")

__all__ = ["NAMES", "PAIR_AND_SOLO", "QUAD", "Story"]


@dataclass
class Story:
    """Four nodes, two of each image store, and a spec that can be edited. Everything follows from the seed."""

    folder: Path
    placements: Placements = PAIR_AND_SOLO
    behaviour: Behaviour | Decides = llamacpp_behaviour
    seed: int = 1
    open_store: Callable[[Location], Store] = open_store
    has_python: bool = True
    preflight: Behaviour = ACCEPTS

    def __post_init__(self) -> None:
        self.image = replace(SimImage.named("ghcr.io/example/llamacpp", self.behaviour), preflight=self.preflight)
        configs = [
            replace(config, name=name, store=store, has_python=self.has_python)
            for config, name, store in zip(sim_nodes(4), NAMES, STORES, strict=True)
        ]
        self.next_image = self.image.rebuilt()
        self.mirrored = self.image.under("mirror.lan/llamacpp")
        self.foreign = replace(SimImage.named("ghcr.io/example/foreign"), bytes_by_platform=(("linux/s390x", 1000),))
        images = [self.image, self.next_image, self.mirrored, self.foreign]
        self.nodes = SimulatedFleet(configs, images, seed=self.seed)
        addresses = {config.name: config.address for config in configs}
        self._inventory = Inventory(addresses, {}, self.image.reference, None, configs[0].platform)
        self.place(self.placements)

    def place(self, placements: Placements) -> None:
        """Edit the spec: these lanes on these clusters."""
        self.placements = placements
        write(self.folder, self._inventory, placements)

    def edit(self, old: str, new: str) -> None:
        """Edit the text of the lanes."""
        path = self.folder / "lanes.yaml"
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))

    def use(self, image: SimImage) -> None:
        """Edit the image of all lanes."""
        self._inventory = replace(self._inventory, image=image.reference)
        self.place(self.placements)

    def load(self) -> Fleet:
        """The fleet as the spec says now."""
        return Fleet.load(self.folder / "fleet.yaml", lambda spec: self.nodes, self.open_store)

    def run(self, work: Callable[[Fleet], Coroutine[Any, Any, Any]]) -> Any:
        """Do something with the fleet, in virtual time, as one run of a command does."""

        async def session() -> Any:
            async with self.load() as fleet:
                return await work(fleet)

        return run_simulated(session(), seed=self.seed)

    def plan(self) -> Plan:
        """What would be done now."""

        async def work(fleet: Fleet) -> Plan:
            return fleet.plan(await fleet.observe())

        made: Plan = self.run(work)
        return made

    def apply(
        self, on_event: Callable[[Event], None] = lambda event: None, stop_after_s: float | None = None
    ) -> Applied:
        """Plan and carry out, as `fleet apply --yes` does; interrupted after `stop_after_s` virtual seconds."""

        async def work(fleet: Fleet) -> Applied:
            stop = asyncio.Event()
            if stop_after_s is not None:
                asyncio.get_running_loop().call_later(stop_after_s, stop.set)
            return await fleet.apply(fleet.plan(await fleet.observe()), on_event, stop)

        applied: Applied = self.run(work)
        return applied

    def sync(self, *clusters: str, stop_after_s: float | None = None) -> Applied:
        """Bring images alone, as `fleet images sync --yes` does."""

        async def work(fleet: Fleet) -> Applied:
            stop = asyncio.Event()
            if stop_after_s is not None:
                asyncio.get_running_loop().call_later(stop_after_s, stop.set)
            return await fleet.apply(await self._sync_plan(fleet, clusters), stop=stop)

        applied: Applied = self.run(work)
        return applied

    def sync_plan(self, *clusters: str) -> Plan:
        """What a sync would bring now."""

        async def work(fleet: Fleet) -> Plan:
            return await self._sync_plan(fleet, clusters)

        made: Plan = self.run(work)
        return made

    async def _sync_plan(self, fleet: Fleet, clusters: tuple[str, ...]) -> Plan:
        on = frozenset(clusters) if clusters else None
        observed = await fleet.observe(nodes=nodes_to_sync(fleet.desired, on))
        return make_sync_plan(fleet.desired, observed, on)

    def apply_until_killed(self) -> bool:
        """Apply; whether the controller was killed on the way."""
        try:
            self.apply()
        except ControllerKilled:
            return True
        return False

    def status(self, *, probe: bool = False) -> FleetStatus:
        """The fleet on its three axes."""

        async def work(fleet: Fleet) -> FleetStatus:
            return await fleet.status(await fleet.observe(), probe=probe)

        found: FleetStatus = self.run(work)
        return found

    def quarantined(self) -> tuple[Quarantine, ...]:
        """The versions that failed and are put aside."""
        store = self.load().open_state()
        try:
            return store.quarantined()
        finally:
            store.close()

    def containers(self) -> dict[str, str]:
        """State of every container of ours, as "node/name"."""
        return {
            f"{node.name}/{item.name}": item.state
            for node in self.nodes.nodes
            for item in node.facts().containers
            if item.owner is not None
        }

    def tried_out(self) -> list[str]:
        """Containers of preflights that are there now, as "node/name"."""
        return [
            f"{node.name}/{item.name}"
            for node in self.nodes.nodes
            for item in node.facts().containers
            if item.preflight
        ]

    def running_lanes(self) -> dict[str, int]:
        """How many ranks of each lane run."""
        found: dict[str, int] = {}
        for node in self.nodes.nodes:
            for item in node.facts().containers:
                if item.owner is not None and item.is_running:
                    found[item.owner.lane] = found.get(item.owner.lane, 0) + 1
        return found

    def created(self) -> list[str]:
        """Every container of a rank that was ever created, with its node. What is cut short is tried out once more."""
        made = (item for item in self.nodes.history() if item.what == "created" and not item.name.endswith(SUFFIX))
        return [f"{item.node}/{item.name}" for item in made]
