"""Who has to go before whom: which running containers stand where a gang wants to boot, and what that ties together.

A *unit* is what runs (or lies stopped) of one gang and is to go: a lane no placement wants any more, or an earlier
generation. Two rules hold it all:

* A unit is stopped only after every gang that takes its place is staged (nobody's lane is stopped in vain). A lane that
  moves to other nodes takes its own place.
* A gang that takes the place of a unit which must stay, stays out too.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

from reconciler.core.classify import GangView, Rule, Situation
from reconciler.core.observed import Placed
from reconciler.core.unknown import not_read

BOOTS = frozenset({Situation.ABSENT, Situation.STOPPED, Situation.CHANGED, Situation.DRIFTED, Situation.BROKEN})
"""Situations that are mended by booting the gang."""


@dataclass(frozen=True)
class Candidate:
    """A wanted gang that is not in sync, the rule that says why, and whether something forbids to go on."""

    view: GangView
    rule: Rule
    is_refused: bool

    @cached_property
    def address(self) -> str:
        """The gang's address."""
        return self.view.gang.address

    @property
    def boots(self) -> bool:
        """Whether it has to boot (as opposed to: be proved, or nothing known)."""
        return self.rule.situation in BOOTS

    @property
    def is_unknown(self) -> bool:
        """Whether a node of it cannot be read: whether it boots is not known."""
        return self.rule.situation is Situation.UNKNOWN

    @cached_property
    def nodes(self) -> frozenset[str]:
        """The nodes it takes."""
        return frozenset(self.view.gang.nodes)


@dataclass(frozen=True)
class Unit:
    """Containers of one gang that are to go. `own_nodes`: where that gang is wanted, empty when it is not.

    `running` are to be stopped (they may boot again later); `removable` are to be removed in the end. `why`: why it
    goes when nothing takes its place. `hidden`: nodes that cannot be read and where, by its labels, it has ranks too.
    """

    address: str
    running: tuple[Placed, ...]
    removable: tuple[Placed, ...]
    own_nodes: frozenset[str] = frozenset()
    why: str = "no placement wants it"
    hidden: frozenset[str] = frozenset()

    @property
    def lane(self) -> str:
        """The lane it is of."""
        return self.address.rpartition("/")[2]

    @property
    def is_wanted(self) -> bool:
        """Whether the gang itself stays wanted (these are its earlier containers)."""
        return bool(self.own_nodes)

    @cached_property
    def nodes(self) -> tuple[str, ...]:
        """The nodes its containers are on, sorted."""
        return tuple(sorted({item.node for item in self.running + self.removable}))

    @property
    def away_nodes(self) -> tuple[str, ...]:
        """The nodes on which its containers are only in the way, those that cannot be seen too."""
        return tuple(node for node in sorted({*self.nodes, *self.hidden}) if node not in self.own_nodes)


@dataclass(frozen=True)
class Ties:
    """Which candidates take whose place, and which of both cannot move now (address -> why)."""

    candidates: tuple[Candidate, ...]
    units: tuple[Unit, ...]
    blocked: dict[str, str] = field(default_factory=dict)
    held: dict[str, str] = field(default_factory=dict)

    @cached_property
    def _replacements(self) -> dict[str, tuple[Candidate, ...]]:
        """By the unit's address: candidates on its nodes, the gang of which it is the past, its lane on other nodes."""
        by_node: dict[str, list[Candidate]] = {}
        by_lane: dict[str, list[Candidate]] = {}
        for candidate in self.candidates:
            by_lane.setdefault(candidate.view.gang.lane, []).append(candidate)
            for node in candidate.nodes:
                by_node.setdefault(node, []).append(candidate)
        by_address = {candidate.address: candidate for candidate in self.candidates}
        found = {}
        for unit in self.units:
            there = {item.address: item for node in unit.away_nodes for item in by_node.get(node, ())}
            if unit.address in by_address:
                there[unit.address] = by_address[unit.address]
            elif not unit.is_wanted:
                coming = (item for item in by_lane.get(unit.lane, ()) if item.boots or item.is_unknown)
                there |= {item.address: item for item in coming}
            found[unit.address] = tuple(there[address] for address in sorted(there))
        return found

    @cached_property
    def _obstacles(self) -> dict[str, tuple[Unit, ...]]:
        found: dict[str, list[Unit]] = {}
        for unit in self.units:
            for candidate in self._replacements[unit.address]:
                found.setdefault(candidate.address, []).append(unit)
        return {address: tuple(units) for address, units in found.items()}

    def replacements(self, unit: Unit) -> tuple[Candidate, ...]:
        """The gangs that take the unit's place: on a node of it, or because it is their past, or their lane moves."""
        return self._replacements[unit.address]

    def obstacles(self, candidate: Candidate) -> tuple[Unit, ...]:
        """The units that have to be gone before the candidate boots."""
        return self._obstacles.get(candidate.address, ())


def tie(candidates: tuple[Candidate, ...], units: tuple[Unit, ...]) -> Ties:
    """Follow the two rules until nothing changes."""
    ties = Ties(candidates, units)
    for candidate in candidates:
        if candidate.is_refused:
            ties.blocked[candidate.address] = "refused"
        elif candidate.is_unknown:
            ties.blocked[candidate.address] = not_read(candidate.view.unknown)
    while _spread(ties):
        pass
    return ties


def _spread(ties: Ties) -> bool:
    """One round; whether anything was added."""
    before = len(ties.blocked) + len(ties.held)
    for unit in ties.units:
        replacements = ties.replacements(unit)
        waits = next((item for item in replacements if item.address in ties.blocked), None)
        if unit.running and waits is not None and unit.address not in ties.held:
            ties.held[unit.address] = f"{waits.address} takes its place and cannot boot now"
        if unit.address in ties.held:
            for item in replacements:
                if item.boots:
                    ties.blocked.setdefault(item.address, f"{unit.address} runs there and stays for now")
    return len(ties.blocked) + len(ties.held) > before


def bonds(ties: Ties, candidates: Iterable[Candidate], units: Iterable[Unit]) -> dict[str, frozenset[str]]:
    """By address: the gangs and units that succeed or fail together, since they take the place of one another."""
    units = tuple(units)
    moving = {item.address for item in candidates}
    bond = {address: {address} for address in (*moving, *(unit.address for unit in units))}
    for unit in units:
        for item in ties.replacements(unit):
            if item.address in moving and bond[item.address] is not bond[unit.address]:
                joined = bond[item.address] | bond[unit.address]
                bond.update(dict.fromkeys(joined, joined))
    return {address: frozenset(members) for address, members in bond.items()}
