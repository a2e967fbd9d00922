"""Earlier generations of a gang, as its containers tell of them: what comes back when a replacement fails.

The nodes carry the truth: the labels of every rank say how its whole gang boots and what proves it, so a lane that the
spec does not know any more can be brought back, and proved, too.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

from reconciler.core.decode import DecodeError, decoded
from reconciler.core.desired import Gang
from reconciler.core.identity import is_proved
from reconciler.core.observed import Placed


@dataclass(frozen=True)
class Generation:
    """One version of a gang: the containers of its ranks, rank 0 first; `recipe` is what their labels say of it.

    `shared`: containers that the version wanted now boots again as they are: to boot it takes their mark of proof away.
    """

    address: str
    recipe: str
    placed: tuple[Placed, ...]
    shared: frozenset[str] = frozenset()

    @cached_property
    def ids(self) -> frozenset[str]:
        """Its containers."""
        return frozenset(item.container.id for item in self.placed)

    @property
    def fingerprints(self) -> tuple[str, ...]:
        """Those of its ranks."""
        return tuple(item.container.owner.fingerprint for item in self.placed if item.container.owner)

    @property
    def nodes(self) -> frozenset[str]:
        """Where its ranks are."""
        return frozenset(item.node for item in self.placed)

    @property
    def runs(self) -> bool:
        """Whether every rank runs."""
        return all(item.container.state == "running" for item in self.placed)

    @property
    def is_proved(self) -> bool:
        """Whether it once passed its gate: as its own containers tell, where others are shared."""
        own = [item for item in self.placed if item.container.id not in self.shared]
        return all(is_proved(item.container.name) for item in own or self.placed)

    @property
    def revision(self) -> int:
        """The newest revision among its containers."""
        return max(item.container.owner.revision for item in self.placed if item.container.owner)

    @property
    def ended_at(self) -> str:
        """When its last rank ended (RFC 3339); empty when none ever did."""
        return max(item.container.finished_at for item in self.placed)

    @cached_property
    def gang(self) -> Gang | None:
        """The gang as it was wanted then; None where labels do not tell (of an earlier release, or damaged)."""
        texts = [item.container.owner.container_text if item.container.owner else "" for item in self.placed]
        try:
            fields = json.loads(self.recipe)
            fields.pop("fingerprints")
            ranks = [{**rank, "container": json.loads(text)} for rank, text in zip(fields["ranks"], texts, strict=True)]
            found = decoded(Gang, json.dumps({**fields, "ranks": ranks}))
        except (ValueError, KeyError, TypeError, AttributeError, DecodeError):
            return None
        return found if found.address == self.address else None


def generations(placed: Iterable[Placed], shared: frozenset[str] = frozenset()) -> tuple[Generation, ...]:
    """The complete generations among containers of one gang, the newest first.

    A rank that did not change between two generations is of both. `shared`: see `Generation`.
    """
    placed = tuple(placed)
    recipes = dict.fromkeys(item.container.owner.recipe for item in placed if item.container.owner)
    found = (_generation(placed, recipe) if recipe else _unlabelled(placed) for recipe in recipes)
    whole = (replace(item, shared=shared) for item in found if item is not None)
    return tuple(sorted(whole, key=lambda item: (item.revision, item.recipe), reverse=True))


def nodes_of(placed: Iterable[Placed]) -> frozenset[str]:
    """The nodes that the labels of these containers name: also those on which a rank of theirs cannot be seen now."""
    recipes = {item.container.owner.recipe for item in placed if item.container.owner}
    return frozenset(node for recipe in recipes for node, _, _ in _ranks(recipe))


def _ranks(recipe: str) -> tuple[tuple[str, int, str], ...]:
    """Node, index and fingerprint of every rank; empty where a recipe is missing or makes no sense."""
    try:
        fields = json.loads(recipe)
        pairs = zip(fields["ranks"], fields["fingerprints"], strict=True)
        return tuple((str(rank["node"]), index, str(mark)) for index, (rank, mark) in enumerate(pairs))
    except (ValueError, KeyError, TypeError, RecursionError):
        return ()


def _generation(placed: tuple[Placed, ...], recipe: str) -> Generation | None:
    wanted = _ranks(recipe)
    found = [_best(placed, node, index, fingerprint) for node, index, fingerprint in wanted]
    ranks = tuple(item for item in found if item is not None)
    return _whole(recipe, ranks, len(wanted))


def _best(placed: tuple[Placed, ...], node: str, index: int, fingerprint: str) -> Placed | None:
    """The container of a rank: a running one first, then a proved one, then the newest."""
    fitting = [
        item
        for item in placed
        if (owner := item.container.owner) and (item.node, owner.rank, owner.fingerprint) == (node, index, fingerprint)
    ]
    return max(fitting, key=_standing, default=None)


def _standing(item: Placed) -> tuple[bool, bool, int]:
    revision = item.container.owner.revision if item.container.owner else 0
    return item.container.is_running, is_proved(item.container.name), revision


def _unlabelled(placed: tuple[Placed, ...]) -> Generation | None:
    """The newest of those whose labels hold no recipe, by their revision."""
    mine = [item for item in placed if item.container.owner and not item.container.owner.recipe]
    newest = max(item.container.owner.revision for item in mine if item.container.owner)
    by_rank = {
        item.container.owner.rank: item
        for item in mine
        if item.container.owner and item.container.owner.revision == newest
    }
    size = max(item.container.owner.size for item in mine if item.container.owner)
    return _whole("", tuple(by_rank[index] for index in sorted(by_rank)), size)


def _whole(recipe: str, ranks: tuple[Placed, ...], size: int) -> Generation | None:
    """Only whole: a part of a gang serves nobody."""
    owner = ranks[0].container.owner if ranks else None
    return Generation(owner.gang, recipe, ranks) if owner is not None and len(ranks) == size else None
