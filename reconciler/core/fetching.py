"""Which models a plan copies from node to node, from whom, and what that comes to."""

import posixpath
from collections.abc import Iterator
from dataclasses import dataclass, replace

from reconciler.core.classify import GangView, RankView
from reconciler.core.desired import Desired, Gang
from reconciler.core.model_sources import Source, lacking, sources
from reconciler.core.models import ModelCopy, ModelFacts, ModelWant
from reconciler.core.observed import Observed


@dataclass(frozen=True)
class Fetch:
    """A model that a rank's node lacks and gets from `source`. `bytes`: what has to come."""

    gang: str
    node: str
    rank: int
    want: ModelWant
    source: Source
    bytes: int
    free_bytes: int | None


def fetches_of(view: GangView, observed: Observed) -> Iterator[Fetch]:
    """All that is copied for a gang, in the order of its ranks."""
    for rank in view.ranks:
        for want in rank.rank.models:
            fetch = fetch_of(view.gang, rank, want, observed)
            if fetch is not None:
                yield fetch


def fetch_of(gang: Gang, rank: RankView, want: ModelWant, observed: Observed) -> Fetch | None:
    """The copy of one model to a rank's node; None where it has it, nobody could give it, or the spec says no."""
    found = rank.facts.model_at(want.place) if want.is_mounted and want.sync else None
    if found is None or not lacking(want, rank.facts) or not found.has_rsync or rank.facts.runs(rank.rank.fingerprint):
        return None
    for source in sources(gang, observed, want.name):
        if source.node != rank.rank.node and can_give(source, want):
            missing = bytes_missing(source.facts, found)
            return Fetch(gang.address, rank.rank.node, rank.rank.index, want, source, missing, found.disk_free_bytes)
    return None


def can_give(source: Source, want: ModelWant) -> bool:
    """Whether a node can pass its model on: it has the program, and the links will lead to the same files there."""
    facts = source.facts
    if not facts.has_rsync or not all(_is_below(path, facts.base) for path in facts.through):
        return False
    folder = want.place.path if facts.there == "folder" else posixpath.dirname(want.place.path)
    return not facts.through or _relative(facts.real, facts.base) == _relative(folder, want.place.base)


def copy_of(source: Source, want: ModelWant, facts: ModelFacts, peer: str) -> ModelCopy:
    """The copy, from what was seen on both sides just now. `facts`: of the node that gets it."""
    there = source.facts
    target = want.place.path if there.there == "folder" else posixpath.dirname(want.place.path)
    through = tuple(_relative(path, there.base) for path in there.through)
    files = tuple(item.path for item in there.files) if there.there == "file" else ()
    return ModelCopy(
        source=source.node,
        address=source.address,
        peer=peer,
        base=there.base,
        folder=there.real,
        target_base=want.place.base,
        target=target,
        bytes=bytes_missing(there, facts),
        files=files,
        through=through,
        is_begun=facts.there == "folder",
    )


def bytes_missing(source: ModelFacts, target: ModelFacts) -> int:
    """What has to come, by files that are there with the same length."""
    have = {(item.path, item.bytes) for item in target.files}
    return sum(item.bytes for item in source.files if (item.path, item.bytes) not in have)


def allowing_copies(desired: Desired, models: frozenset[str]) -> Desired:
    """The same fleet, which wants these models alone (or all where none is named), and may copy them."""
    return replace(desired, gangs=tuple(_allowing(gang, models) for gang in desired.gangs))


def _allowing(gang: Gang, models: frozenset[str]) -> Gang:
    ranks = tuple(
        replace(
            rank, models=tuple(replace(want, sync=True) for want in rank.models if not models or want.name in models)
        )
        for rank in gang.ranks
    )
    return replace(gang, ranks=ranks)


def _relative(path: str, base: str) -> str:
    return path.removeprefix(base).lstrip("/") or "."


def _is_below(path: str, base: str) -> bool:
    return path.startswith(f"{base}/")
