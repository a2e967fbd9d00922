"""The stock of images: what is on the nodes and in the controller's vault, and the removal of what nobody needs.

found = await stock(fleet, await fleet.observe())
done = await collect(fleet, gc_plan(found))
"""

import asyncio
import uuid
from collections.abc import Callable, Iterable, Iterator
from functools import partial

import specs
from reconciler import person, vault_stock
from reconciler.core.desired import ImagePin
from reconciler.core.garbage import (
    Collected,
    Ending,
    GcPlan,
    Removed,
    Stock,
)
from reconciler.core.leases import Claim
from reconciler.core.lock import Lock, LockedImage
from reconciler.core.observed import LocalImage, NodeFacts, Observed, Unknown
from reconciler.core.retention import Holding, Rules, Standing, Wanted, judged
from reconciler.engines.pins import pin_of
from reconciler.execution.fencing import FencedNode
from reconciler.execution.leasing import LeaseKeeper
from reconciler.fleet import OBSERVE_S, Fleet
from reconciler.images import lockfile
from reconciler.nodes.errors import ErrorKind, NodeError
from reconciler.nodes.observation import with_inventory

OnRemoved = Callable[[Removed], None]


async def stock(fleet: Fleet, observed: Observed, deadline_s: float = OBSERVE_S) -> Stock:
    """The images of all nodes that were read, asked for all at once, and the vault. Changes nothing.

    A node that does not tell its images within `deadline_s` is unknown. Raises `SupplyError` when the vault is there
    and cannot be read.
    """
    lock = lockfile.read(fleet.spec.root)
    rules = rules_of(fleet.spec, lock)
    states, vault = await asyncio.gather(
        with_inventory(fleet.nodes, observed.nodes, _known(observed), deadline_s),
        asyncio.to_thread(vault_stock.look, vault_stock.vault_path(fleet.spec), rules.protect, lock),
    )
    told = {**observed.nodes, **states}
    holdings = [judged(name, facts.images, facts.containers, rules) for name, facts in _read(told.items())]
    unknown = tuple(state for _, state in sorted(told.items(), key=_node) if isinstance(state, Unknown))
    nodes = tuple(name for name, _ in _read(told.items()))
    return Stock(fleet.desired.fleet, rules, tuple(item for found in holdings for item in found), unknown, vault, nodes)


async def collect(fleet: Fleet, plan: GcPlan, on_removed: OnRemoved = lambda removed: None) -> Collected:
    """Remove what the plan says, each after another look: what somebody needs since then is left.

    A failure is told with its place, and the rest goes on. Nothing is forced.
    """
    lock = lockfile.read(fleet.spec.root)
    rules = rules_of(fleet.spec, lock)
    by_node: dict[str, list[Holding]] = {}
    for item in plan.removals:
        by_node.setdefault(item.node, []).append(item)
    sweeps = [_Sweep(fleet, rules, node, items, on_removed) for node, items in sorted(by_node.items())]
    await asyncio.gather(*(sweep.run() for sweep in sweeps))
    removals = [item for sweep in sweeps for item in sweep.removals]
    freed = {sweep.node: sweep.freed_bytes for sweep in sweeps}
    if plan.vault is not None and not plan.vault.is_empty:
        path = vault_stock.vault_path(fleet.spec)
        removed, freed[vault_stock.VAULT] = await asyncio.to_thread(vault_stock.sweep, plan, rules, path, lock)
        on_removed(removed)
        removals.append(removed)
    return Collected(tuple(removals), freed, tuple(sweep.unknown for sweep in sweeps if sweep.unknown is not None))


def rules_of(spec: specs.Spec, lock: Lock) -> Rules:
    """What is said of keeping images: by all lanes of the spec, placed or not, by its settings, by `fleet.lock`."""
    lanes: dict[ImagePin, list[str]] = {}
    for name, lane in sorted(spec.lanes.items()):
        lanes.setdefault(lock.pinned(pin_of(lane.image)), []).append(name)
    wanted = tuple(Wanted(pin, tuple(names)) for pin, names in lanes.items())
    locked = tuple(lock.pinned(ImagePin(_reference(image), image.digest, image.kind)) for image in lock.images)
    return Rules(wanted, spec.images.retain, spec.images.protect, locked)


def _reference(image: LockedImage) -> str:
    return f"{image.name}@{image.digest}" if image.name else image.digest


def _node(entry: tuple[str, object]) -> str:
    return entry[0]


def _known(observed: Observed) -> list[str]:
    return [name for name, _ in _read(observed.nodes.items())]


def _read(states: Iterable[tuple[str, NodeFacts | Unknown]]) -> Iterator[tuple[str, NodeFacts]]:
    return ((name, facts) for name, facts in sorted(states, key=_node) if isinstance(facts, NodeFacts))


class _Sweep:
    """The removals of one node, one after the other."""

    def __init__(self, fleet: Fleet, rules: Rules, node: str, items: Iterable[Holding], on_removed: OnRemoved) -> None:
        self.node = node
        self.removals: list[Removed] = []
        self.freed_bytes: int | None = None
        self.unknown: Unknown | None = None
        self._sizes: list[int | None] = []
        """Of what is gone. It freed no more: the disk is everybody's, and others may have freed the rest."""
        self._fleet, self._rules, self._items, self._on_removed = fleet, rules, items, on_removed

    async def run(self) -> None:
        """Remove all; a node that cannot be reached, goes away, or that somebody else changes is left as it is."""
        leases = LeaseKeeper(self._fleet.nodes, Claim(person.name(), "removing spare images", uuid.uuid4().hex[:12]))
        try:
            await self._run(leases)
        finally:
            await leases.release()

    async def _run(self, leases: LeaseKeeper) -> None:
        try:
            node = await self._fleet.nodes.connect(self.node, OBSERVE_S)
            await leases.take([self.node])
            session = FencedNode(node, partial(leases.confirm, node))
            before = (await session.observer.observe()).disk_free_bytes
            for item in self._items:
                self._tell(await self._remove(session, item))
            after = (await session.observer.observe()).disk_free_bytes
        except NodeError as error:
            self.unknown = error.as_unknown(self.node)
            return
        if before is not None and after is not None:
            freed, sizes = max(after - before, 0), [size for size in self._sizes if size is not None]
            self.freed_bytes = min(freed, sum(sizes)) if len(sizes) == len(self._sizes) else freed

    async def _remove(self, session: FencedNode, item: Holding) -> Removed:
        """Look again, then remove. Raises `NodeError` when the connection was lost."""
        told = partial(Removed, self.node, item.name)
        now = await self._judged_now(session, item.image)
        if now is None:
            return told(Ending.GONE)
        if now.standing is not Standing.SPARE:
            return told(Ending.LEFT, f"it is {now.standing} now: {now.reason}")
        try:
            await session.images.remove(now.image)
            self._sizes.append(now.image.size_bytes)
        except NodeError as error:
            if error.is_transport:
                raise
            ending = Ending.LEFT if error.kind is ErrorKind.CONFLICT else Ending.FAILED
            return told(ending, error.message, error.hint)
        return told(Ending.REMOVED)

    async def _judged_now(self, session: FencedNode, image: LocalImage) -> Holding | None:
        facts = await session.observer.observe()
        images = await session.images.inventory()
        found = judged(self.node, images, facts.containers, self._rules)
        return next((item for item in found if item.image.id == image.id), None)

    def _tell(self, removed: Removed) -> None:
        self.removals.append(removed)
        self._on_removed(removed)
