"""What state a wanted gang is in, by an ordered list of rules. The first rule that holds decides.

Each rule has a sentence; the sentence is the documentation, and each has a test of its own.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from reconciler.core.desired import Desired, Gang, RankSpec
from reconciler.core.diff import FieldChange, changes, secret_changes
from reconciler.core.identity import is_proved, proved_name
from reconciler.core.observed import Container, NodeFacts, Observed, Placed, Unknown
from reconciler.core.previous import Generation, generations
from reconciler.core.secret_marks import NO_MARKS, SecretMarks


@dataclass(frozen=True)
class RankView:
    """One rank and all containers that were ever made for it on its node, newest revision first.

    `secrets`: what they are now, by reference.
    """

    rank: RankSpec
    facts: NodeFacts
    found: tuple[Container, ...]
    secrets: SecretMarks = NO_MARKS

    @cached_property
    def fit(self) -> Container | None:
        """The container that is exactly what is wanted: a running one first, then the newest.

        One that something newer has served after is history: to go back to it is to make a new one like it.
        """
        fitting = [item for item in self.found if self._fits(item) and (item.is_running or not self._is_past(item))]
        return next((item for item in fitting if item.is_running), fitting[0] if fitting else None)

    @cached_property
    def drift(self) -> tuple[FieldChange, ...]:
        """What differs between the rank's present container and the wanted one."""
        present = self.present
        return () if present is None else changes(self.rank.container, present, self.secrets)

    @cached_property
    def new_secrets(self) -> tuple[FieldChange, ...]:
        """The secrets that changed since the rank's present container was made."""
        present = self.present
        return () if present is None else secret_changes(self.rank.container, present, self.secrets)

    @property
    def present(self) -> Container | None:
        """The container that stands for this rank now: a running one first, then the newest."""
        return next((item for item in self.found if item.is_running), self.found[0] if self.found else None)

    @property
    def is_up(self) -> bool:
        """Whether the wanted container runs (paused or restarting is not running)."""
        return self.fit is not None and self.fit.state == "running"

    def _is_past(self, container: Container) -> bool:
        """Whether something newer has served, or another has the name that it would get."""
        revision = container.owner.revision if container.owner else 0
        newer = (item for item in self.found if item.owner and item.owner.revision > revision and is_proved(item.name))
        twin = (item for item in self.found if item.name == proved_name(container.name) and item is not container)
        return any(newer) or any(twin)

    def _fits(self, container: Container) -> bool:
        owner = container.owner
        same = owner is not None and owner.fingerprint == self.rank.fingerprint
        return same and not changes(self.rank.container, container, self.secrets)


@dataclass(frozen=True)
class GangView:
    """One wanted gang as it is found. `strays`: its containers where none of its ranks belongs.

    `retain`: so many earlier generations stay, to go back to.
    """

    gang: Gang
    unknown: tuple[Unknown, ...]
    ranks: tuple[RankView, ...]
    strays: tuple[Placed, ...]
    retain: int = 0

    @cached_property
    def spare(self) -> tuple[Placed, ...]:
        """Every container of the gang that is not (any more) the wanted one of a rank."""
        extra = [Placed(view.rank.node, item) for view in self.ranks for item in view.found if item is not view.fit]
        return tuple(extra) + self.strays

    @cached_property
    def kept(self) -> tuple[Generation, ...]:
        """The earlier generations that stay, newest first: whole, proved, on the gang's own nodes."""
        if not self.retain or not self.spare:
            return ()
        fits = [Placed(view.rank.node, view.fit) for view in self.ranks if view.fit is not None]
        wanted = tuple(view.rank.fingerprint for view in self.ranks)
        shared = frozenset(item.container.id for item in fits)
        whole = generations((*self.spare, *fits), shared)
        found = (item for item in whole if item.is_proved and item.fingerprints != wanted)
        return tuple(item for item in found if item.nodes <= set(self.gang.nodes))[: self.retain]

    @cached_property
    def litter(self) -> tuple[Placed, ...]:
        """Every container of the gang that is of no use any more."""
        kept = {key for item in self.kept for key in item.ids}
        return tuple(item for item in self.spare if item.container.id not in kept)

    @cached_property
    def displaced(self) -> tuple[Placed, ...]:
        """Running containers that are nobody's, and that the spec names as ones that may be stopped for it."""
        return tuple(
            Placed(view.rank.node, item)
            for view in self.ranks
            for item in view.facts.containers
            if item.owner is None and item.is_running and item.name in self.gang.may_stop
        )

    @cached_property
    def holding(self) -> tuple[Placed, ...]:
        """Every container of the gang that runs, wanted or not."""
        wanted = [
            Placed(view.rank.node, view.fit) for view in self.ranks if view.fit is not None and view.fit.is_running
        ]
        return tuple(wanted) + tuple(item for item in self.spare if item.container.is_running)


class Situation(StrEnum):
    """What a gang's state asks for."""

    UNKNOWN = "unknown"
    IN_SYNC = "in-sync"
    LITTERED = "littered"
    UNPROVED = "unproved"
    ABSENT = "absent"
    STOPPED = "stopped"
    CHANGED = "changed"
    DRIFTED = "drifted"
    BROKEN = "broken"


@dataclass(frozen=True)
class Rule:
    """A situation, when it holds, and the sentence that says so."""

    situation: Situation
    holds: Callable[[GangView], bool]
    sentence: str


def _all_up(view: GangView) -> bool:
    return all(rank.is_up for rank in view.ranks)


def _all_proved(view: GangView) -> bool:
    return _all_up(view) and all(is_proved(rank.fit.name) for rank in view.ranks if rank.fit)


def runs_other_fingerprint(view: GangView) -> bool:
    """Whether a container of the gang runs that was made from another spec."""
    wanted = {rank.rank.fingerprint for rank in view.ranks}
    return any(item.container.owner and item.container.owner.fingerprint not in wanted for item in view.holding)


def _runs_with_other_secrets(view: GangView) -> bool:
    return any(rank.new_secrets for rank in view.ranks if rank.present and rank.present.is_running)


def _runs_drifted(view: GangView) -> bool:
    return any(rank.drift for rank in view.ranks if rank.present and rank.present.is_running)


RULES: tuple[Rule, ...] = (
    Rule(Situation.UNKNOWN, lambda view: bool(view.unknown), "a node of the gang cannot be read: nothing is decided"),
    Rule(
        Situation.IN_SYNC,
        lambda view: _all_proved(view) and not view.litter,
        "every rank runs as wanted and the gang was proved: nothing to do",
    ),
    Rule(
        Situation.LITTERED,
        _all_proved,
        "as wanted, but containers of earlier generations, or on other nodes, are left",
    ),
    Rule(
        Situation.UNPROVED,
        _all_up,
        "every rank runs as wanted, but the gang was never proved healthy",
    ),
    Rule(
        Situation.CHANGED,
        lambda view: bool(view.holding) and (runs_other_fingerprint(view) or _runs_with_other_secrets(view)),
        "it runs, but as something else than is wanted, or with secrets that changed since",
    ),
    Rule(Situation.DRIFTED, _runs_drifted, "a running rank was changed by hand"),
    Rule(Situation.BROKEN, lambda view: bool(view.holding), "some ranks run and some do not: the gang boots again"),
    Rule(
        Situation.STOPPED,
        lambda view: any(rank.found for rank in view.ranks),
        "its containers are there, but none of them runs",
    ),
    Rule(Situation.ABSENT, lambda view: True, "wanted, not there"),
)


def classify(view: GangView) -> Rule:
    """The first rule that holds for the gang."""
    return next(rule for rule in RULES if rule.holds(view))


def ours(desired: Desired, observed: Observed) -> tuple[Placed, ...]:
    """All containers of this fleet on all known nodes, by node and name."""
    return tuple(
        Placed(node, item)
        for node in sorted(observed.nodes)
        if (facts := observed.facts(node)) is not None
        for item in sorted(facts.containers, key=lambda found: found.name)
        if item.owner is not None and item.owner.fleet == desired.fleet
    )


def by_gang(placed: Iterable[Placed]) -> dict[str, tuple[Placed, ...]]:
    """Containers by the address of the gang they were made for."""
    groups: dict[str, list[Placed]] = {}
    for item in placed:
        if item.container.owner is not None:
            groups.setdefault(item.container.owner.gang, []).append(item)
    return {address: tuple(items) for address, items in sorted(groups.items())}


def view_of(gang: Gang, found: tuple[Placed, ...], observed: Observed, retain: int = 0) -> GangView:
    """The gang with everything that was found of it."""
    states = [observed.nodes.get(node) for node in dict.fromkeys(gang.nodes)]
    unknown = tuple(state for state in states if isinstance(state, Unknown))
    if unknown:
        away = tuple(item for item in found if item.node not in gang.nodes)
        return GangView(gang, unknown, (), away, retain)
    ranks = tuple(_rank_view(rank, found, observed) for rank in gang.ranks)
    seen = {item.id for rank in ranks for item in rank.found}
    strays = tuple(item for item in found if item.container.id not in seen)
    return GangView(gang, (), ranks, strays, retain)


def _rank_view(rank: RankSpec, found: tuple[Placed, ...], observed: Observed) -> RankView:
    facts = observed.facts(rank.node)
    if facts is None:
        raise KeyError(f"node {rank.node} was not observed")
    mine = [
        item.container
        for item in found
        if item.node == rank.node and item.container.owner and item.container.owner.rank == rank.index
    ]
    newest = sorted(mine, key=lambda item: (item.owner.revision if item.owner else 0, item.created_at), reverse=True)
    return RankView(rank, facts, tuple(newest), observed.secrets.marks)
