"""The stock of images: what is on the nodes and in the controller's vault, and the removal of what nobody needs.

found = await stock(fleet, await fleet.observe())
done = await collect(fleet, gc_plan(found))
"""

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import specs
from reconciler.core.desired import ImagePin
from reconciler.core.garbage import (
    Blob,
    Collected,
    Ending,
    GcPlan,
    Removed,
    Stock,
    VaultFacts,
    VaultPlan,
    gc_plan,
)
from reconciler.core.lock import Lock, LockedImage
from reconciler.core.observed import LocalImage, NodeFacts, Observed, Unknown
from reconciler.core.retention import Holding, Rules, Standing, Wanted, judged
from reconciler.fleet import OBSERVE_S, Fleet
from reconciler.images import lockfile
from reconciler.images.documents import LARGEST_DOCUMENT, descriptor, parsed, read_document
from reconciler.images.errors import SupplyError
from reconciler.images.vault import Vault, default_vault
from reconciler.nodes.errors import ErrorKind, NodeError
from reconciler.nodes.observation import with_inventory
from reconciler.nodes.protocols import Node

VAULT = "vault"
"""Stands where a node's name would."""

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
        asyncio.to_thread(_look, vault_path(fleet.spec), rules.protect, lock),
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
        removed, freed[VAULT] = await asyncio.to_thread(_sweep_vault, plan, rules, vault_path(fleet.spec), lock)
        on_removed(removed)
        removals.append(removed)
    return Collected(tuple(removals), freed, tuple(sweep.unknown for sweep in sweeps if sweep.unknown is not None))


def rules_of(spec: specs.Spec, lock: Lock) -> Rules:
    """What is said of keeping images: by all lanes of the spec, placed or not, by its settings, by `fleet.lock`."""
    lanes: dict[ImagePin, list[str]] = {}
    for name, lane in sorted(spec.lanes.items()):
        lanes.setdefault(lock.pinned(_pin(lane.image)), []).append(name)
    wanted = tuple(Wanted(pin, tuple(names)) for pin, names in lanes.items())
    locked = tuple(lock.pinned(ImagePin(_reference(image), image.digest, image.kind)) for image in lock.images)
    return Rules(wanted, spec.images.retain, spec.images.protect, locked)


def vault_path(spec: specs.Spec) -> Path:
    """Where the vault of this spec is, or would be."""
    return spec.images.vault or default_vault()


def _pin(image: specs.ImageRef) -> ImagePin:
    return ImagePin(image.text, image.digest, image.kind, image.registry or None, image.repository or None)


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
        """Remove all; a node that cannot be reached, or goes away in the middle, is left as it is."""
        try:
            session = await self._fleet.nodes.connect(self.node, OBSERVE_S)
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

    async def _remove(self, session: Node, item: Holding) -> Removed:
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

    async def _judged_now(self, session: Node, image: LocalImage) -> Holding | None:
        facts = await session.observer.observe()
        images = await session.images.inventory()
        found = judged(self.node, images, facts.containers, self._rules)
        return next((item for item in found if item.image.id == image.id), None)

    def _tell(self, removed: Removed) -> None:
        self.removals.append(removed)
        self._on_removed(removed)


# the vault

Named = tuple[tuple[str, ...], tuple[str, ...]]
"""What a document refers to: the manifests of an index; the config and the layers of a manifest."""

NOTHING: Named = ((), ())


def _look(path: Path, protect: tuple[str, ...], lock: Lock) -> VaultFacts | None:
    """The vault as it is; None when there is none. Raises `SupplyError` when it cannot be read."""
    if not path.is_dir():
        return None
    vault = Vault(path)
    roots = {owner: tuple(sorted(tops)) for owner, tops in vault.roots().items()}
    below, damaged = _references(vault, (top for tops in roots.values() for top in tops), lock)
    blobs = tuple(Blob(*told) for told in vault.digests())
    whole = {blob.digest for blob in blobs}
    return VaultFacts(
        path=str(path),
        seen_s=time.time(),
        roots=roots,
        blobs=blobs,
        parts=tuple(part for part in (Blob(*told) for told in vault.parts()) if part.digest not in whole),
        below=below,
        damaged=damaged,
        protected_by=_protected_by(path, protect),
    )


def _references(vault: Vault, tops: Iterable[str], lock: Lock) -> tuple[dict[str, tuple[str, ...]], tuple[str, ...]]:
    """What each index and manifest refers to, and which of them are damaged and not in the lock either: what those
    refer to is not known. What is not there refers to nothing.
    """
    locked = _locked(lock)
    below: dict[str, tuple[str, ...]] = {}
    damaged: set[str] = set()
    open_ends = [*tops]
    while open_ends:
        digest = open_ends.pop()
        if digest in below:
            continue
        try:
            documents, blobs = _named_in(vault.path(digest), digest)
        except (SupplyError, OSError) as error:
            documents, blobs = locked.get(digest, NOTHING)
            if digest not in locked and not isinstance(error, FileNotFoundError):
                damaged.add(digest)
        below[digest] = documents + blobs
        open_ends += documents
    return below, tuple(sorted(damaged))


def _locked(lock: Lock) -> dict[str, Named]:
    found: dict[str, Named] = {}
    images = [image for image in lock.images if image.kind == "digest"]
    for platform in (item for image in images for item in image.platforms):
        found[platform.manifest] = (), (platform.config, *(layer.digest for layer in platform.layers))
    for image in (image for image in images if image.digest not in found):
        found[image.digest] = tuple(platform.manifest for platform in image.platforms), ()
    return found


def _named_in(path: Path, digest: str) -> Named:
    """The manifests an index names, and the config and the layers a manifest names. Raises `SupplyError`, `OSError`.

    Not by `Vault.read`, which drops what is damaged: looking changes nothing.
    """
    with path.open("rb") as file:
        told = parsed(read_document(digest, LARGEST_DOCUMENT, lambda _, most: file.read(most)), digest)
    manifests, layers = (told[key] if isinstance(told.get(key), list) else [] for key in ("manifests", "layers"))
    parts = [*layers, *([told["config"]] if told.get("config") else [])]
    return tuple(descriptor(item, digest)[0] for item in manifests), tuple(
        descriptor(item, digest)[0] for item in parts
    )


def _protected_by(vault: Path, protect: Iterable[str]) -> str:
    """The path of `protect` that the vault is below, or that is in it; "" when there is none."""
    own = {vault.absolute(), vault.resolve()}
    for entry in (item for item in protect if item.startswith("/")):
        places = {Path(entry), Path(entry).resolve()}
        if any(a.is_relative_to(b) or b.is_relative_to(a) for a in own for b in places):
            return entry
    return ""


def _sweep_vault(plan: GcPlan, rules: Rules, path: Path, lock: Lock) -> tuple[Removed, int]:
    """Remove what the plan says and a fresh look still says; with the bytes that were freed."""
    freed = 0
    try:
        facts = _look(path, rules.protect, lock)
        fresh = gc_plan(Stock(plan.fleet, rules, plan.stays, plan.unknown, facts)).vault
        if plan.vault is None or fresh is None:
            return Removed(VAULT, str(path), Ending.GONE), freed
        due, vault = _both(plan.vault, fresh), Vault(path)
        for top in due.released:
            vault.release(plan.fleet, top)
        for blob in (*due.blobs, *due.parts):
            freed += vault.remove(blob.digest)
    except (SupplyError, OSError) as error:
        return Removed(VAULT, str(path), Ending.FAILED, str(error), getattr(error, "hint", "")), freed
    return Removed(VAULT, str(path), Ending.REMOVED, vault=due), freed


def _both(planned: VaultPlan, fresh: VaultPlan) -> VaultPlan:
    """What both say. A blob that was planned and is needed again since is left."""
    names = {item.digest for item in (*planned.blobs, *planned.parts)}
    return replace(
        fresh,
        names=planned.names,
        released=tuple(top for top in fresh.released if top in planned.released),
        blobs=tuple(item for item in fresh.blobs if item.digest in names),
        parts=tuple(item for item in fresh.parts if item.digest in names),
    )
