"""What of the images may go, on the nodes and in the controller's vault: the plan of `fleet images gc`."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from reconciler.core.observed import Unknown
from reconciler.core.retention import Holding, Rules, Standing

SCHEMA = "fleet.images-gc/1"

TRANSFER_S = 3600.0
"""A blob that nothing refers to is left alone for so long: the transfer it is part of may be under way."""

PART_S = 86400.0
"""A half transfer is left alone for so long: it is resumed where it ended."""


@dataclass(frozen=True)
class Blob:
    """A blob of the vault, or what is there of one; when the last of it came (epoch seconds)."""

    digest: str
    size_bytes: int
    changed_s: float


@dataclass(frozen=True)
class VaultFacts:
    """The vault as seen at `seen_s` (epoch seconds).

    `roots`: top digests by owner. `below`: what each manifest and index that is there refers to. `damaged`: those that
    cannot be read, so that nobody knows what they refer to. `protected_by`: the entry of `protect` that covers it.
    """

    path: str
    seen_s: float
    roots: Mapping[str, tuple[str, ...]]
    blobs: tuple[Blob, ...] = ()
    parts: tuple[Blob, ...] = ()
    below: Mapping[str, tuple[str, ...]] | None = None
    damaged: tuple[str, ...] = ()
    protected_by: str = ""

    @property
    def size_bytes(self) -> int:
        """All of it, half transfers too."""
        return sum(item.size_bytes for item in (*self.blobs, *self.parts))


@dataclass(frozen=True)
class Stock:
    """What is where. `nodes`: those that were read, also without any image. `vault` None: there is none yet."""

    fleet: str
    rules: Rules
    holdings: tuple[Holding, ...]
    unknown: tuple[Unknown, ...]
    vault: VaultFacts | None = None
    nodes: tuple[str, ...] = ()

    def on(self, node: str) -> "Stock":
        """The same, of one node alone."""
        holdings = tuple(item for item in self.holdings if item.node == node)
        unknown = tuple(item for item in self.unknown if item.node == node)
        return replace(
            self, holdings=holdings, unknown=unknown, nodes=tuple(name for name in self.nodes if name == node)
        )


@dataclass(frozen=True)
class VaultPlan:
    """What of the vault would go. `released`: images this fleet needs no more. `note`: why something stays, or "".

    `young`: how many blobs no image needs, but may be part of a transfer that is under way, with `young_bytes`.
    `names`: what released images are called, by digest, where that is known.
    """

    path: str
    released: tuple[str, ...] = ()
    blobs: tuple[Blob, ...] = ()
    parts: tuple[Blob, ...] = ()
    note: str = ""
    young: int = 0
    young_bytes: int = 0
    names: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to do."""
        return not (self.released or self.blobs or self.parts)

    @property
    def bytes(self) -> int:
        """What is freed of the controller's disk."""
        return sum(item.size_bytes for item in (*self.blobs, *self.parts))


@dataclass(frozen=True)
class GcPlan:
    """What would be removed, and what stays and why. Nodes that could not be read are listed and not touched."""

    schema: str
    fleet: str
    removals: tuple[Holding, ...]
    stays: tuple[Holding, ...]
    unknown: tuple[Unknown, ...]
    vault: VaultPlan | None

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to do."""
        return not self.removals and (self.vault is None or self.vault.is_empty)

    def bytes_of(self, node: str) -> int:
        """What is freed of a node's disk at most: layers that a remaining image shares stay."""
        return sum(item.image.size_bytes or 0 for item in self.removals if item.node == node)


def gc_plan(stock: Stock) -> GcPlan:
    """What may go of what is there."""
    spare = tuple(item for item in stock.holdings if item.standing is Standing.SPARE)
    stays = tuple(item for item in stock.holdings if item.standing is not Standing.SPARE)
    return GcPlan(SCHEMA, stock.fleet, spare, stays, stock.unknown, _vault_plan(stock, stays))


def _vault_plan(stock: Stock, stays: Iterable[Holding]) -> VaultPlan | None:
    vault = stock.vault
    if vault is None:
        return None
    if vault.protected_by:
        return VaultPlan(vault.path, note=f"protected: images.protect: {vault.protected_by}")
    parts = tuple(item for item in vault.parts if vault.seen_s - item.changed_s > PART_S)
    released, note = _released(stock, stays, vault.roots.get(stock.fleet, ()))
    tops = {top for owner, tops in vault.roots.items() for top in tops if owner != stock.fleet or top not in released}
    reached = _reached(tops, vault.below or {})
    damaged = sorted(reached & set(vault.damaged))
    if damaged:
        note = f"{damaged[0][:19]} is damaged: what it refers to is not known, so no blob is removed"
        return VaultPlan(vault.path, parts=parts, note=note)
    loose = [item for item in vault.blobs if item.digest not in reached]
    old = tuple(item for item in loose if vault.seen_s - item.changed_s > TRANSFER_S)
    young = [item for item in loose if item not in old]
    young_bytes = sum(item.size_bytes for item in young)
    return VaultPlan(vault.path, released, old, parts, note, len(young), young_bytes, _names(stock, released))


def _released(stock: Stock, stays: Iterable[Holding], tops: Iterable[str]) -> tuple[tuple[str, ...], str]:
    """The images that this fleet needs no more; and why not, when that cannot be said."""
    needed = {item.pin.digest for item in stock.rules.wanted} | {pin.digest for pin in stock.rules.locked}
    needed |= {digest for item in stays if item.standing is not Standing.FOREIGN for digest in item.image.digests}
    free = tuple(sorted(top for top in tops if top not in needed))
    if free and stock.unknown:
        names = ", ".join(item.node for item in stock.unknown)
        return (), f"what {names} may need of it is not known, so its images stay"
    return free, ""


def _names(stock: Stock, tops: Iterable[str]) -> dict[str, str]:
    """What the nodes call these images: the vault has bytes alone."""
    known = {digest: item.name for item in stock.holdings if item.has_name for digest in item.image.digests}
    return {top: f"{known[top].rpartition('@')[0]}@{top[:19]}" for top in tops if top in known}


def _reached(tops: Iterable[str], below: Mapping[str, tuple[str, ...]]) -> set[str]:
    """Everything that can be got to from these digests, themselves too."""
    found: set[str] = set()
    open_ends = [*tops]
    while open_ends:
        digest = open_ends.pop()
        if digest not in found:
            found.add(digest)
            open_ends += below.get(digest, ())
    return found


# what came of it


class Ending(StrEnum):
    """How one removal ended. Values are stable: they are in JSON outputs."""

    REMOVED = "removed"
    GONE = "gone"  # somebody else was faster
    LEFT = "left"  # since the plan, something speaks for it
    FAILED = "failed"


@dataclass(frozen=True)
class Removed:
    """What came of one removal. `where` is a node, or "vault"; of the vault, `vault` is what went of it."""

    where: str
    what: str
    ending: Ending
    detail: str = ""
    hint: str = ""
    vault: VaultPlan | None = None


@dataclass(frozen=True)
class Collected:
    """What came of a plan. `freed_bytes`: by node, and "vault"; None where the disk does not tell."""

    removals: tuple[Removed, ...]
    freed_bytes: Mapping[str, int | None]
    unknown: tuple[Unknown, ...] = ()

    @property
    def failed(self) -> tuple[Removed, ...]:
        """What could not be removed."""
        return tuple(item for item in self.removals if item.ending is Ending.FAILED)
