"""Watches a simulated fleet and says what happened that never may. The rules are the invariants of the design.

It is told of every effect right before it happens, and of everything that has happened. It never looks at what the
controller thinks, only at the nodes, at the plan it was shown, and at who did what.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from reconciler.core.desired import Desired, Gang
from reconciler.core.identity import is_proved
from reconciler.core.observed import Owner
from reconciler.core.plan import Plan
from reconciler.core.preflight import preflight_mark
from reconciler.testing.containers import SimContainer
from reconciler.testing.faults import Call
from reconciler.testing.fleet import SimulatedFleet
from reconciler.testing.history import Happening
from reconciler.testing.node import SimNode

Staged = tuple[str, str, str]
"""A node, a gang's address, and the fingerprint of a rank."""


@dataclass
class Round:
    """One controller at work: what it wants, and what was true on the nodes since it began."""

    desired: Desired
    fleet: str
    is_announced: Callable[[str], bool] = lambda node: True
    plan: Plan | None = None
    staged: set[Staged] = field(default_factory=set)
    seen_s: dict[str, float] = field(default_factory=dict)
    ran: dict[str, set[str]] = field(default_factory=dict)
    started: Counter[str] = field(default_factory=Counter)
    disturbed: set[str] = field(default_factory=set)
    boots: dict[str, str] = field(default_factory=dict)
    made: set[str] = field(default_factory=set)
    changed: set[str] = field(default_factory=set)
    accepted: set[str] = field(default_factory=set)


class Monitor:
    """The watcher of one simulated fleet. `violations`: sentences; empty while all is well.

    `needs_lease`: whether every change has to be made under a lease of its node.
    """

    def __init__(self, fleet: SimulatedFleet, *, needs_lease: bool = True) -> None:
        self.violations: list[str] = []
        self.rounds: dict[str, Round] = {}
        self.needs_lease = needs_lease
        self._fleet = fleet
        self._operations: Counter[str] = Counter()
        self._by_people: dict[str, float] = {}
        self._stopping: set[str] = set()
        self._disturbed: set[str] = set()
        fleet.on_effect = self.before
        fleet.world.on_happening = self.after

    # told by whoever plays

    def begins(
        self, controller: str, desired: Desired, fleet: str, is_announced: Callable[[str], bool] = lambda node: True
    ) -> None:
        """A controller begins to observe and to plan. `is_announced`: whether its journal has an intent for a node."""
        self.rounds[controller] = Round(desired, fleet, is_announced, disturbed=set(self._disturbed))

    def planned(self, controller: str, plan: Plan) -> None:
        """It has made its plan and goes on to carry it out."""
        now = self.rounds[controller]
        now.plan = plan
        now.staged = {found for node in self._fleet.nodes for found in _staged_on(node)}
        now.ran = self._serving(now.fleet)

    def _serving(self, fleet: str) -> dict[str, set[str]]:
        """By node, the containers of gangs that run whole and proved."""
        found: dict[tuple[str, int], list[tuple[str, str]]] = {}
        sizes: dict[tuple[str, int], int] = {}
        for node in self._fleet.nodes:
            for item in _ours(node, fleet):
                if item.owner is not None and item.is_running and is_proved(item.name):
                    key = item.owner.gang, item.owner.revision
                    found.setdefault(key, []).append((node.name, item.id))
                    sizes[key] = item.owner.size
        serving: dict[str, set[str]] = {}
        for key, ranks in found.items():
            for name, container_id in ranks if len(ranks) == sizes[key] else ():
                serving.setdefault(name, set()).add(container_id)
        return serving

    def disturbed(self, node: str) -> None:
        """Something was done to a node from outside: what it ends as is not the controller's doing alone.

        It may last: what a later round finds there is half done already.
        """
        self._disturbed.add(node)
        for one in self.rounds.values():
            one.disturbed.add(node)

    # told by the simulation

    def before(self, call: Call) -> None:
        """An effect is about to happen."""
        now = self.rounds.get(call.by)
        if now is None:
            return
        if call.operation in {"observe", "inspect"}:
            now.seen_s[call.node] = call.at_s
        if call.operation == "lease" and call.node not in now.changed:
            now.boots[call.node] = self._fleet.node(call.node).boot_id
        if call.mutating:
            now.changed.add(call.node)
            for why in self._faults_of(call, now):
                self.violations.append(f"{call.at_s:.2f} s: {call.operation} {call.ref[:60]} on {call.node}: {why}")

    def after(self, happening: Happening) -> None:
        """Something happened."""
        if happening.what == "exited" and happening.detail == "code 0":
            self._accepted(happening)
        if not happening.by:
            self._by_itself(happening)
            return
        now = self.rounds.get(happening.by)
        if now is None or happening.what not in {"created", "started"}:
            return
        for why in self._created(happening, now) if happening.what == "created" else self._started(happening, now):
            self.violations.append(
                f"{happening.at_s:.2f} s: {happening.name} {happening.what} on {happening.node}: {why}"
            )

    def _by_itself(self, happening: Happening) -> None:
        """A person, or an engine that ends without having been told to."""
        if happening.what == "started":
            self._by_people[happening.container_id] = happening.at_s
        elif happening.what == "exited" and happening.container_id not in self._stopping and is_proved(happening.name):
            self.disturbed(happening.node)

    def _faults_of(self, call: Call, now: Round) -> Iterator[str]:
        if now.plan is None:
            yield "planning changes nothing (7)"
            return
        if now.plan.refusals:
            yield "a plan with refusals is not touched (10)"
        if any(item.node == call.node for item in now.plan.unknown):
            yield "nothing was known of this node when the plan was made (3)"
        if not now.is_announced(call.node):
            yield "its journal has no intent for it (5)"
        if self.needs_lease and call.fence is None:
            yield "it is not under a lease of the node (6)"
        found = self._fleet.node(call.node).runtime.find(call.ref) if call.operation != "create" else None
        if found is not None and call.operation not in {"stage", "remove-image"}:
            yield from self._on_container(call, now, found)

    def _on_container(self, call: Call, now: Round, found: SimContainer) -> Iterator[str]:
        owner = found.owner
        tried = preflight_mark(found.name, found.labels)
        if tried is not None and tried.fleet == now.fleet:
            return
        if owner is None or owner.fleet != now.fleet:
            yield "a foreign container is left alone (3)"
            return
        if call.operation == "stop":
            self._stopping.add(found.id)
        yield from self._too_early(call, now, found, owner)
        if call.operation == "stop" and found.is_ready and is_proved(found.name) and not now.started[found.id]:
            missing = sorted({f"{gang} on {node}" for node, gang, _ in self._not_staged(found, now)})
            if missing:
                yield f"it serves, and what takes its place is not there yet: {', '.join(missing)} (1)"

    def _too_early(self, call: Call, now: Round, found: SimContainer, owner: Owner) -> Iterator[str]:
        """Steps that come before what has to be true for them."""
        withheld = {item.gang for item in now.plan.withheld} if now.plan else set()
        is_new = call.operation == "start" and found.id in now.made
        node = self._fleet.node(call.node)
        if is_new and now.boots.get(call.node, node.boot_id) != node.boot_id:
            yield "the node was booted since its lease was taken: what is known of it counts no more (5)"
        if call.operation == "start" and owner.gang in withheld:
            yield "its gang is withheld"
        is_head = call.operation == "rename" and owner.rank == 0 and not is_proved(found.name)
        if is_head and found.is_running and not found.is_ready:
            yield "it is marked as proved, and does not answer yet (4)"
        if call.operation == "remove" and is_proved(found.name):
            takers = (gang for gang in self._takers(found, now) if not now.disturbed & {*gang.nodes})
            waiting = sorted({gang.address for gang in takers if not self._is_proved(gang)})
            if waiting:
                yield f"it served before, and what takes its place is not proved: {', '.join(waiting)} (4)"

    def _is_proved(self, gang: Gang) -> bool:
        return all(
            any(
                _is_of(item, gang.address) and is_proved(item.name) and item.owner.fingerprint == rank.fingerprint
                for item in self._fleet.node(rank.node).runtime.containers.values()
                if item.owner is not None
            )
            for rank in gang.ranks
        )

    def _not_staged(self, found: SimContainer, now: Round) -> Iterator[Staged]:
        """The containers of its replacements that were not there at any moment since the plan was made."""
        for gang in self._takers(found, now):
            for rank in gang.ranks:
                wanted = (rank.node, gang.address, rank.fingerprint)
                if wanted not in now.staged:
                    yield wanted

    def _takers(self, found: SimContainer, now: Round) -> Iterator[Gang]:
        if found.owner is None or now.plan is None:
            return
        address = found.owner.gang
        nodes = {node.name for node in self._fleet.nodes for item in _ours(node, now.fleet) if _is_of(item, address)}
        for gang in now.desired.gangs:
            if gang.address in now.plan.unchanged:
                continue
            if gang.address == address or nodes & {*gang.nodes}:
                yield gang

    def _created(self, happening: Happening, now: Round) -> Iterator[str]:
        owner = happening.owner
        now.made.add(happening.container_id)
        if owner is None:
            yield from self._tried(happening)
            return
        wanted = next((gang for gang in now.desired.gangs if gang.address == owner.gang), None)
        tried_out = wanted.preflight.rank if wanted is not None and wanted.preflight is not None else None
        if owner.rank == tried_out and owner.gang not in now.accepted:
            yield "nothing has tried its command line out (1)"
        now.staged.add((happening.node, owner.gang, owner.fingerprint))
        self._operations[owner.operation] += 1
        if self._operations[owner.operation] > 1:
            yield f"its operation {owner.operation} has made one before (5)"

    def _accepted(self, happening: Happening) -> None:
        """A preflight has found nothing against what it tried."""
        ended = self._fleet.node(happening.node).runtime.require(happening.container_id)
        mark = preflight_mark(ended.name, ended.labels)
        if mark is not None:
            for one in self.rounds.values():
                one.accepted.add(mark.gang)

    def _tried(self, happening: Happening) -> Iterator[str]:
        """The container of a preflight is there once, and takes nothing that a lane may hold."""
        made = self._fleet.node(happening.node).runtime.require(happening.container_id)
        mark = preflight_mark(made.name, made.labels)
        if mark is None:
            return
        self._operations[mark.operation] += 1
        if self._operations[mark.operation] > 1:
            yield f"its operation {mark.operation} has made one before (5)"
        if made.spec.gpus or made.spec.devices:
            yield "a preflight takes GPUs or devices beside what runs (2)"

    def _started(self, happening: Happening, now: Round) -> Iterator[str]:
        now.started[happening.container_id] += 1
        if now.started[happening.container_id] > 1 and happening.node not in now.disturbed:
            yield "this run has started it before (5)"
        node = self._fleet.node(happening.node)
        mine = node.runtime.require(happening.container_id)
        for other in node.runtime.containers.values():
            if other is mine or not other.is_running or not _conflict(mine, other):
                continue
            if self._by_people.get(other.id, -1.0) < now.seen_s.get(happening.node, 0.0):
                yield f"{other.name} runs there on the same GPU (2)"


def _conflict(one: SimContainer, other: SimContainer) -> bool:
    if one.owner and other.owner and one.owner.fleet == other.owner.fleet:
        return (one.owner.gang, one.owner.revision) != (other.owner.gang, other.owner.revision)
    return False


def _is_of(item: SimContainer, address: str) -> bool:
    return item.owner is not None and item.owner.gang == address


def _ours(node: SimNode, fleet: str) -> Iterator[SimContainer]:
    return (item for item in node.runtime.containers.values() if item.owner and item.owner.fleet == fleet)


def _staged_on(node: SimNode) -> Iterator[Staged]:
    for item in node.runtime.containers.values():
        if item.owner is not None:
            yield node.name, item.owner.gang, item.owner.fingerprint
