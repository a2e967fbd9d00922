"""What has to be true when an apply has ended, and when everything has."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from reconciler.core.desired import Desired, Gang
from reconciler.core.exits import Exit
from reconciler.core.identity import is_proved
from reconciler.core.plan import Plan
from reconciler.core.preflight import preflight_mark
from reconciler.testing.fleet import FIRST, SimulatedFleet
from reconciler.testing.simulation.cast import SECRET
from reconciler.testing.simulation.engine import SERVING
from reconciler.testing.simulation.monitor import Monitor, Round
from reconciler.testing.simulation.scenario import Turn

ASKED_EVERY = 5
"""Every so many seeds all that was said is searched for secrets: to write it all out takes as long as to play."""

CALM_EXITS = frozenset({Exit.OK, Exit.REFUSED, Exit.UNCHANGED})


@dataclass(frozen=True)
class Ending:
    """How an apply ended: exit code, and one line.

    `texts` makes everything it said and wrote down, to be searched for secrets; not every scenario asks for it.
    """

    exit: int
    summary: str
    texts: Callable[[], tuple[str, ...]] = tuple


def faults(fleet: SimulatedFleet, monitor: Monitor, turn: Turn, ending: Ending, *, is_calm: bool) -> tuple[str, ...]:
    """What is wrong at the end of a turn that was not killed. `is_calm`: nothing but its engines could go wrong."""
    now = monitor.rounds[FIRST]
    found = [*_secrets(fleet, ending)]
    if turn.rival is None:
        found += _halves(fleet, now, ending)
        if ending.exit == Exit.OK:
            found += (f"{why} though it ended with 0" for why in _not_serving(fleet, now))
    if is_calm and ending.exit not in CALM_EXITS:
        found.append(f"nothing was disturbed, and it ended with {ending.exit}: {ending.summary}")
    if is_calm and ending.exit != Exit.OK and all(part.mood in SERVING for part in turn.wants):
        found.append(f"nothing was disturbed, all engines serve, and it ended with {ending.exit}: {ending.summary}")
    return tuple(found)


def reply_faults(turn: Turn, ending: Ending) -> tuple[str, ...]:
    """What is wrong when nothing but the reply of one change was lost: the node is looked at, and the apply goes on."""
    if ending.exit == Exit.OK or not all(part.mood in SERVING for part in turn.wants):
        return ()
    return (f"one reply of a change was lost, nothing else, and it ended with {ending.exit}: {ending.summary} (5)",)


def _halves(fleet: SimulatedFleet, now: Round, ending: Ending) -> Iterator[str]:
    """Invariant 4: where nobody meddled, a gang is as wanted, or what ran before it runs as before."""
    if now.plan is None or ending.exit in {Exit.NEEDS_A_PERSON, Exit.INTERRUPTED, Exit.ERROR}:
        return
    for gang in now.desired.gangs:
        if now.disturbed & {*gang.nodes} or any(_is_up(fleet, gang, index) for index in range(len(gang.ranks))):
            continue
        lost = [item for node in gang.nodes for item in now.ran.get(node, ()) if not _runs(fleet, node, item)]
        if lost:
            yield f"{gang.address} does not run, and neither does all that ran there before (4)"
    for gang in now.desired.gangs:
        up = [_is_up(fleet, gang, index) for index in range(len(gang.ranks))]
        if any(up) and not all(up) and not now.disturbed & {*gang.nodes} and not _ran_half(fleet, now, gang):
            yield f"{gang.address} runs by half: {up} (4)"


def _ran_half(fleet: SimulatedFleet, now: Round, gang: Gang) -> bool:
    """Whether what runs of it ran before: it may stay as it was."""
    running = [
        item.id
        for rank in gang.ranks
        for item in fleet.node(rank.node).runtime.containers.values()
        if item.is_running and item.owner and item.owner.gang == gang.address
    ]
    before = {item for node in gang.nodes for item in now.ran.get(node, ())}
    return before.issuperset(running)


def _runs(fleet: SimulatedFleet, node: str, container_id: str) -> bool:
    return fleet.node(node).runtime.is_running(container_id)


def _is_up(fleet: SimulatedFleet, gang: Gang, index: int) -> bool:
    rank = gang.ranks[index]
    return any(
        item.state == "running" and is_proved(item.name) and item.owner and item.owner.gang == gang.address
        for item in fleet.node(rank.node).runtime.containers.values()
        if item.owner and item.owner.fingerprint == rank.fingerprint
    )


def _not_serving(fleet: SimulatedFleet, now: Round) -> Iterator[str]:
    """Ranks that do not run on nodes that nobody touched."""
    for gang in now.desired.gangs:
        if not now.disturbed & {*gang.nodes} and not all(
            _is_up(fleet, gang, index) for index in range(len(gang.ranks))
        ):
            yield f"{gang.address} does not serve"


def _secrets(fleet: SimulatedFleet, ending: Ending) -> Iterator[str]:
    is_asked = fleet.seed % ASKED_EVERY == 0
    if is_asked and any(SECRET in text for text in ending.texts()):
        yield "the value of a secret was told (8)"


def final_faults(
    fleet: SimulatedFleet, monitor: Monitor, wants: Desired, ending: Ending, plan: Plan
) -> tuple[str, ...]:
    """What is wrong at the very end."""
    now = monitor.rounds[FIRST]
    found = [*_secrets(fleet, ending), *_labels(fleet)]
    if ending.exit != Exit.OK:
        found.append(f"everything is healed, and the last apply ends with {ending.exit}: {ending.summary} (5)")
        return tuple(found)
    if not plan.is_settled:
        found.append(f"after an apply that went well a plan is not settled: {[step.id for step in plan.steps]} (7)")
    found += (f"{why} in the end (5)" for why in _not_serving(fleet, Round(wants, now.fleet)))
    found += _left_over(fleet, wants, now.fleet)
    return tuple(found)


def _labels(fleet: SimulatedFleet) -> Iterator[str]:
    for node in fleet.nodes:
        for item in node.runtime.containers.values():
            if any(SECRET in text for text in (item.name, *item.labels.values(), *item.spec.command)):
                yield f"{item.name} on {node.name} shows the value of a secret (8)"


def _left_over(fleet: SimulatedFleet, wants: Desired, name: str) -> Iterator[str]:
    """What nobody owns: containers of this fleet that are of no wanted rank, or run without being one."""
    wanted = {(rank.node, gang.address, rank.index) for gang in wants.gangs for rank in gang.ranks}
    prints = {(rank.node, rank.fingerprint) for gang in wants.gangs for rank in gang.ranks}
    for node in fleet.nodes:
        for item in node.runtime.containers.values():
            owner = item.owner
            if preflight_mark(item.name, item.labels) is not None:
                yield f"{item.name} ({item.state}) is left on {node.name} of a preflight (5)"
            if owner is None or owner.fleet != name:
                continue
            is_kept = (node.name, owner.gang, owner.rank) in wanted and is_proved(item.name) and not item.is_running
            if (node.name, owner.fingerprint) not in prints and not is_kept:
                yield f"{item.name} ({item.state}) is left on {node.name} and nobody wants it (5)"
