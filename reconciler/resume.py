"""Runs that came to no end: whether somebody still works on them, and what their open entries turned out to be.

Two controllers may share a journal, so a run without an end may be one that is under way. The nodes tell: whoever works
holds their leases, and whoever died has lost them.
"""

import asyncio
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

import state
from reconciler.core.desired import Desired
from reconciler.core.exits import Exit
from reconciler.core.leases import UNKNOWN, Holder
from reconciler.core.observed import NodeFacts
from reconciler.core.settling import forgotten, settled
from reconciler.core.targets import Targets
from reconciler.nodes.errors import ErrorKind, NodeError
from reconciler.nodes.observation import observe_all
from reconciler.nodes.protocols import Fleet

RUNS_LOOKED_AT = 200
"""How far back runs without an end are looked for."""

LOOK_S = 10.0
"""Deadline of reading one node."""


@dataclass(frozen=True)
class Settling:
    """What became of all that was open.

    `settled`: entries with their outcome, which is recorded. `left`: entries that stay open, since their node cannot be
    read or their run is under way. `ended`: runs that were over and are recorded as such now. `working`: who holds a
    lease for a run without an end, by that run's id.
    """

    settled: tuple[state.Entry, ...] = ()
    left: tuple[state.Entry, ...] = ()
    ended: tuple[str, ...] = ()
    working: Mapping[str, Holder] = field(default_factory=dict)


@dataclass(frozen=True)
class Unfinished:
    """A run that did not come to its end, and the gangs it touched that no later run saw through."""

    run: state.Run
    gangs: frozenset[str]


@dataclass(frozen=True)
class Touched(Targets):
    """The gangs of a run as what is asked for of a plan."""

    gangs: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return True

    def hit(self, gang: str, nodes: Iterable[str]) -> bool:
        """Whether the run touched this gang, wherever it is now."""
        return gang in self.gangs


async def settle(store: state.Store, nodes: Fleet, desired: Desired, now: float) -> Settling:
    """Settle what dead runs of this fleet left open, by looking at the nodes, and end those runs with exit 130.

    A run that holds the lease of one of its nodes is under way, and is left alone; so is what cannot be looked at. Asks
    nobody when nothing is open. `now`: seconds since the epoch. Raises `state.StateError`.
    """
    runs = [run for run in store.runs(RUNS_LOOKED_AT) if run.fleet == desired.fleet]
    journals = {run.id: store.entries(run.id) for run in runs if run.ended_at is None}
    ours = {run.id for run in runs}
    still_open = [entry for entry in store.open_entries() if entry.run_id in ours]
    if not still_open and not any(journals.values()):
        return Settling()
    look = await _look(nodes, desired, {entry.node for entry in still_open if entry.node})
    found, left = [], []
    for entry in still_open:
        outcome = look.outcome(entry)
        if outcome is None:
            left.append(entry)
        else:
            store.outcome(entry.run_id, entry.sequence, *outcome, now)
            found.append(replace(entry, result=outcome[0], detail=outcome[1], ended_at=now))
    unsettled = {entry.run_id for entry in left}
    over = [run for run, entries in journals.items() if entries and run not in unsettled and look.is_over(run, entries)]
    for run_id in over:
        store.end_run(run_id, Exit.INTERRUPTED, now)
    return Settling(tuple(found), tuple(left), tuple(over), look.working(journals))


@dataclass(frozen=True)
class _Look:
    """What was seen of the nodes. `holders`: of every node that could be asked who has its lease."""

    desired: Desired
    facts: Mapping[str, NodeFacts]
    holders: Mapping[str, Holder | None]

    def outcome(self, entry: state.Entry) -> tuple[str, str] | None:
        """What became of an open entry; None while its run works there, or while that cannot be known."""
        if entry.node is not None and entry.node not in self._declared:
            return forgotten(entry)
        return settled(entry, self.facts.get(entry.node or "")) if self.is_over(entry.run_id, [entry]) else None

    def is_over(self, run_id: str, entries: Iterable[state.Entry]) -> bool:
        """Whether a run certainly works on none of the nodes that these entries are about."""
        places = self._places(entries)
        return places <= self.holders.keys() and not any(self._may_be(run_id, self.holders[name]) for name in places)

    def working(self, run_ids: Collection[str]) -> dict[str, Holder]:
        """Who holds a lease for one of these runs."""
        found = (holder for holder in self.holders.values() if holder is not None)
        return {holder.claim.run_id: holder for holder in found if holder.claim.run_id in run_ids}

    @property
    def _declared(self) -> set[str]:
        return {node.name for node in self.desired.nodes}

    def _places(self, entries: Iterable[state.Entry]) -> set[str]:
        """The nodes that entries are about: of a step of a whole gang, the gang's; where that is unknown, all."""
        found: set[str] = set()
        homes = {gang.address: set(gang.nodes) for gang in self.desired.gangs}
        for entry in entries:
            found |= {entry.node} if entry.node else homes.get(entry.gang, self._declared)
        return found & self._declared

    @staticmethod
    def _may_be(run_id: str, holder: Holder | None) -> bool:
        """A holder whose note on the node is damaged may be anybody."""
        return holder is not None and holder.claim.run_id in {run_id, UNKNOWN}


async def _look(nodes: Fleet, desired: Desired, names: Collection[str]) -> _Look:
    """Who works where is asked first: what a run did before it lost its lease is seen by the look after that."""
    declared = [node.name for node in desired.nodes]
    told = dict(zip(declared, await asyncio.gather(*(_holder(nodes, name) for name in declared)), strict=True))
    holders = {name: holder for name, holder in told.items() if not isinstance(holder, NodeError)}
    seen = await observe_all(nodes, [name for name in holders if name in names], LOOK_S)
    return _Look(desired, {name: facts for name, facts in seen.items() if isinstance(facts, NodeFacts)}, holders)


async def _holder(nodes: Fleet, name: str) -> Holder | NodeError | None:
    try:
        async with asyncio.timeout(LOOK_S):
            return await (await nodes.connect(name, LOOK_S)).leases.holder()
    except NodeError as error:
        return error
    except TimeoutError:
        return NodeError(ErrorKind.TIMEOUT, f"{name} did not say within {LOOK_S:g} s who has its lease")


def unfinished(store: state.Store, fleet: str, run_id: str | None = None) -> Unfinished | None:
    """The newest run of a fleet that came to no end, or the one of this id; None when there is none.

    A gang that a later run saw to an end, whichever, is that run's affair. Raises `state.StateError`.
    """
    later: set[str] = set()
    for run in store.runs(RUNS_LOOKED_AT):
        if run.fleet != fleet:
            continue
        gangs = frozenset(entry.gang for entry in store.entries(run.id))
        if not is_unfinished(run):
            later |= gangs
        elif run_id in {None, run.id} and gangs - later:
            return Unfinished(run, gangs - later)
    return None


def is_unfinished(run: state.Run) -> bool:
    """Whether a run was killed, was interrupted, or is still under way."""
    return run.exit_code in {None, Exit.INTERRUPTED}
