"""What brings a group of gangs back when it fails between cut and confirm.

Gangs that take the place of the same lane succeed or fail together. When one of them fails, what was booted stops, and
what served before starts again: the same containers, in the order and behind the gate that their own labels tell.

What comes back, by lane: the generation that ran when the plan was made; where none ran whole (an earlier run was
broken off between cut and confirm), the newest one that was proved. Nothing comes back that is just what failed.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from reconciler.core.desired import ContainerSpec, Gang, SecretRef
from reconciler.core.identity import is_proved, unproved_name
from reconciler.core.observed import Placed
from reconciler.core.plan import Op, Phase, Rollback, Step
from reconciler.core.previous import Generation, generations
from reconciler.core.room import needs_room
from reconciler.core.steps import STOPPED_STATES
from reconciler.core.units import Candidate, Unit


def rollback_of(
    candidates: Iterable[Candidate], units: Iterable[Unit], stops: tuple[Step, ...], taken: frozenset[str] = frozenset()
) -> Rollback:
    """The way back of a group: `candidates` boot or are proved, `units` make room for them, `stops` undo the boots.

    `taken`: nodes on which others run or are to run: what did not run there when the plan was made does not come back.
    """
    candidates, units = tuple(candidates), tuple(units)
    coming = tuple(item for item in returning(candidates, units) if item.runs or item.nodes.isdisjoint(taken))
    gangs = sorted({item.address for item in candidates} | {unit.address for unit in units})
    gone = tuple(stop.id for stop in stops)
    steps = stops + tuple(step for item in coming for step in _return(item, gone))
    steps += tuple(step for item in candidates if item.boots for step in _return_foreign(item, gone))
    return Rollback(tuple(gangs), steps, tuple(_bare(item.gang) for item in coming if item.gang is not None))


def _bare(gang: Gang) -> Gang:
    """Without what its containers are made of: they are there. What was written out in an old spec may be a secret now.

    The references of its secrets stay: the logs of its ranks may hold the values.
    """
    return replace(gang, ranks=tuple(replace(rank, container=_secrets_of(rank.container)) for rank in gang.ranks))


def _secrets_of(container: ContainerSpec) -> ContainerSpec:
    env = tuple((key, value) for key, value in container.env if isinstance(value, SecretRef))
    return ContainerSpec(container.image, command=(), env=env)


def returning(candidates: tuple[Candidate, ...], units: tuple[Unit, ...]) -> tuple[Generation, ...]:
    """The generations that come back, no two of them on one node unless both share it.

    Where two ran on one node all the same (a person started one), what was proved goes before what was not, and a lane
    that is wanted before one that is not; what ran before what did not; then what ended last.
    """
    by_unit = {unit.address: unit for unit in units}
    by_candidate = {item.address: item for item in candidates}
    addresses = sorted({*by_unit, *by_candidate})
    found = [one for item in addresses for one in _of_gang(by_unit.get(item), by_candidate.get(item))]
    found.sort(key=lambda item: item.ended_at, reverse=True)
    found.sort(key=lambda item: (not item.runs, not item.is_proved, item.address not in by_candidate))
    chosen: list[Generation] = []
    for item in found:
        if all(_fit_together(item, other) for other in chosen):
            chosen.append(item)
    return tuple(sorted(chosen, key=lambda item: item.address))


def _fit_together(one: Generation, other: Generation) -> bool:
    share = all(item.gang is not None and item.gang.shares for item in (one, other))
    return share or one.nodes.isdisjoint(other.nodes)


def _of_gang(unit: Unit | None, candidate: Candidate | None) -> Iterator[Generation]:
    of_unit = () if unit is None else (*unit.running, *unit.removable)
    of_candidate = () if candidate is None else (*candidate.view.spare, *_fits(candidate))
    placed = {item.container.id: item for item in (*of_unit, *of_candidate)}
    new = frozenset(item.container.id for item in _fits(candidate))
    whole = [item for item in generations(placed.values(), new) if not item.ids <= new]
    running = [item for item in whole if item.runs]
    proved = [] if _was_proved(candidate) else [item for item in whole if item.is_proved]
    yield from (running or proved)[:1]


def _fits(candidate: Candidate | None) -> tuple[Placed, ...]:
    """The containers that boot again as they are."""
    ranks = () if candidate is None else candidate.view.ranks
    return tuple(Placed(rank.rank.node, rank.fit) for rank in ranks if rank.fit is not None)


def _was_proved(candidate: Candidate | None) -> bool:
    """Whether what is to boot served before: then an older generation is not what served last."""
    fits = _fits(candidate)
    return candidate is not None and len(fits) == len(candidate.view.ranks) and _all_proved(fits)


def _all_proved(placed: Iterable[Placed]) -> bool:
    return all(is_proved(item.container.name) for item in placed)


def _return(generation: Generation, after: tuple[str, ...]) -> Iterator[Step]:
    """Start again wave by wave, then what proves it; a mark of proof that was taken away is given back."""
    gate = after
    waves = generation.gang.boot_order if generation.gang else (tuple(range(len(generation.placed))),)
    for number, wave in enumerate(waves):
        steps = [step for index in wave for step in _wave(generation, index, gate, is_last=number + 1 == len(waves))]
        yield from steps
        gate = tuple(step.id for step in steps)
    if generation.gang is not None and generation.is_proved:
        verify = replace(_step(generation, Op.VERIFY, None), requires=gate)
        yield verify
        gate = (verify.id,)
    if generation.is_proved:
        for index in range(len(generation.placed)):
            confirm = _step(generation, Op.CONFIRM, index)
            target = unproved_name(confirm.target)
            yield replace(confirm, target=target, states=("running",), requires=gate)


def _return_foreign(candidate: Candidate, after: tuple[str, ...]) -> Iterator[Step]:
    """What was stopped by permission and is nobody's starts again; what proves it nobody knows."""
    for item in candidate.view.displaced:
        name = item.container.name
        step_id = f"{candidate.address}/{Phase.ROLLBACK}/{item.node}/{Op.START}/{name}"
        step = Step(step_id, candidate.address, Phase.ROLLBACK, Op.START, item.node, name, "it ran here before", after)
        yield replace(step, container_id=item.container.id, states=STOPPED_STATES)


def _wave(generation: Generation, index: int, gate: tuple[str, ...], *, is_last: bool) -> Iterator[Step]:
    rank = generation.gang.ranks[index] if generation.gang else None
    if rank is not None and needs_room(rank):
        room = replace(_step(generation, Op.ROOM, index), requires=gate)
        yield room
        gate = (room.id,)
    start = replace(_step(generation, Op.START, index), states=STOPPED_STATES, requires=gate)
    yield start
    if rank is not None and rank.ready and not is_last:
        yield replace(_step(generation, Op.READY, index), requires=(start.id,))


def _step(generation: Generation, op: Op, index: int | None) -> Step:
    where = f"/{generation.placed[index].node}" if index is not None else ""
    step_id = f"{generation.address}/{Phase.ROLLBACK}{where}/{op}"
    reason = "it ran here before"
    if index is None:
        return Step(step_id, generation.address, Phase.ROLLBACK, op, None, generation.address, reason)
    placed = generation.placed[index]
    step = Step(step_id, generation.address, Phase.ROLLBACK, op, placed.node, placed.container.name, reason, rank=index)
    revision = placed.container.owner.revision if placed.container.owner else None
    return replace(step, container_id=placed.container.id, revision=revision)
