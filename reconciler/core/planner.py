"""`make_plan`: the one door from what is wanted and what is there to what would be done.

Read it top down: find what exists, classify every wanted gang, tie together who makes room for whom, then lay out the
steps. Nothing here can touch a node, wait, or ask for the time.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from reconciler.core import remarks
from reconciler.core.changes import changes, may_be_removed, outages, room_reason
from reconciler.core.checks import Case, Finding, Judge, Judgement, Occasion, Silenced
from reconciler.core.classify import GangView, Situation, by_gang, classify, ours, view_of
from reconciler.core.desired import Desired, Gang
from reconciler.core.explain import boot_reason
from reconciler.core.observed import Observed, Placed
from reconciler.core.options import PlanOptions
from reconciler.core.plan import Deferred, Phase, Plan, Refusal, Rollback, Step, sealed
from reconciler.core.preflight import clearing, clearing_changes
from reconciler.core.previous import nodes_of
from reconciler.core.remarks import refusal_of
from reconciler.core.rollback import rollback_of
from reconciler.core.staging import Staging
from reconciler.core.steps import (
    Builder,
    GangSteps,
    boot_steps,
    new_names,
    next_revision,
    prove_steps,
)
from reconciler.core.unit_steps import removals, stop_steps
from reconciler.core.units import Candidate, Ties, Unit, bonds, tie

__all__ = ["PlanOptions", "make_plan"]


def make_plan(desired: Desired, observed: Observed, options: PlanOptions | None = None) -> Plan:
    """The difference between `desired` and `observed`, as a frozen plan.

    Pure and deterministic: the same values give the same bytes, whatever order they were built in.
    """
    options = options or PlanOptions()
    survey = _survey(desired, observed, Judge.of(desired, options.today, options.checks))
    ties = tie(survey.candidates, survey.units)
    staging = Staging.of(_views(_moving(ties)), desired.transfer, observed)
    steps = _lay_out(ties, staging, _there(desired, observed, ties))
    planned = (*steps.loose, *(step for gang in steps.gangs for step in gang.all()))
    cleared = clearing(desired, observed, planned)
    told = changes(ties, survey.unchanged, observed.sources)
    return sealed(
        replace(
            remarks.nothing_to_do(desired, observed, options),
            refusals=survey.refusals + _empty_guard(desired, survey, options),
            deferred=_deferred(ties),
            outages=outages(ties),
            changes=(*clearing_changes(cleared, {change.gang for change in told}), *told),
            steps=_in_order((*planned, *cleared)),
            rollbacks=steps.rollbacks,
            gangs=_gangs(ties),
            foreign=remarks.foreign(desired, observed, _displaced(ties)),
            unchanged=survey.unchanged,
            transfers=staging.transfers,
            silenced=survey.silenced,
            notices=survey.notices,
        )
    )


@dataclass(frozen=True)
class Survey:
    """Everything wanted and found, classified."""

    candidates: tuple[Candidate, ...]
    units: tuple[Unit, ...]
    refusals: tuple[Refusal, ...]
    silenced: tuple[Silenced, ...]
    notices: tuple[Finding, ...]
    unchanged: tuple[str, ...]


def _survey(desired: Desired, observed: Observed, judge: Judge) -> Survey:
    groups = by_gang(ours(desired, observed))
    gangs = sorted(desired.gangs, key=lambda gang: gang.address)
    found = [_found(view_of(gang, groups.get(gang.address, ()), observed, desired.retain)) for gang in gangs]
    staging = Staging.of(_views(found), desired.transfer, observed)
    candidates: list[Candidate] = []
    judged: list[Judgement] = []
    unchanged: list[str] = []
    units: list[Unit] = []
    for item in found:
        judgement = judge.of_gang(Case(desired, observed, item.view, staging), _occasion(item))
        judged.append(judgement)
        units += _past(item)
        if item.rule.situation in {Situation.IN_SYNC, Situation.LITTERED}:
            unchanged.append(item.address)
        else:
            candidates.append(replace(item, is_refused=bool(judgement.fails)))
    wanted = {gang.address for gang in gangs}
    units += [
        _unwanted(desired, observed, address, placed) for address, placed in groups.items() if address not in wanted
    ]
    units.sort(key=lambda unit: unit.address)
    return Survey(
        candidates=tuple(candidates),
        units=tuple(units),
        refusals=tuple(refusal_of(found) for one in judged for found in one.fails),
        silenced=tuple(found for one in judged for found in one.silenced),
        notices=tuple(found for one in judged for found in one.notices) + tuple(judge.silences.faults()),
        unchanged=tuple(unchanged),
    )


def _found(view: GangView) -> Candidate:
    return Candidate(view, classify(view), is_refused=False)


def _occasion(item: Candidate) -> Occasion | None:
    if item.boots:
        return Occasion.BOOT
    return Occasion.PROOF if item.rule.situation is Situation.UNPROVED else None


def _views(items: Iterable[Candidate]) -> list[GangView]:
    """Of those that boot."""
    return [item.view for item in items if item.boots]


def _past(candidate: Candidate) -> list[Unit]:
    """The gang's own earlier containers, and for one that boots again, all that runs of it."""
    view = candidate.view
    stray = tuple(item for item in view.spare if item.container.is_running)
    running = view.holding if candidate.boots else stray
    if not running and not view.litter:
        return []
    return [Unit(candidate.address, running, view.litter, candidate.nodes)]


def _unwanted(desired: Desired, observed: Observed, address: str, placed: tuple[Placed, ...]) -> Unit:
    running = tuple(item for item in placed if item.container.is_running)
    unknown = {state.node for state in remarks.unknown(observed)}
    unit = Unit(address, running, placed, hidden=nodes_of(running) & unknown)
    down = "taken down by hand; the spec places it"
    return replace(unit, why=down) if address in desired.taken_down else unit


@dataclass(frozen=True)
class Layout:
    """Steps by gang, those that belong to no gang that boots, and the way back of each group."""

    gangs: tuple[GangSteps, ...]
    loose: tuple[Step, ...]
    rollbacks: tuple[Rollback, ...]


def _moving(ties: Ties) -> list[Candidate]:
    return [item for item in ties.candidates if item.address not in ties.blocked]


def _lay_out(ties: Ties, staging: Staging, there: Mapping[str, frozenset[str]]) -> Layout:
    """Stage every gang that goes on; stop units behind the stages of their whole bond; then boot, confirm and retire.

    Of a bond (`units.bonds`) nothing is stopped before all is staged, and nothing is confirmed before all is proved.
    """
    moving = _moving(ties)
    units = [unit for unit in ties.units if unit.address not in ties.held]
    bond_of = bonds(ties, moving, units)
    builders = _builders(moving, staging)
    stages = {item.address: builders[item.address].stage() if item.boots else () for item in moving}
    staged = {address: _of_bond(bond, stages) for address, bond in bond_of.items()}
    stops = {unit.address: _stops(ties, unit, staged[unit.address]) for unit in units}
    proving = {item.address: _gang_steps(ties, item, builders[item.address], staged, stages, stops) for item in moving}
    verifies = {address: steps.verify for address, steps in proving.items()}
    gangs = {address: steps.confirmed_after(_of_bond(bond_of[address], verifies)) for address, steps in proving.items()}
    confirms = {address: steps.confirm for address, steps in gangs.items()}
    loose = [step for found in stops.values() for step in found]
    for unit in units:
        if may_be_removed(ties, unit):
            after = (*stops[unit.address], *_of_bond(bond_of[unit.address], confirms))
            loose += removals(unit, room_reason(ties, unit), staged[unit.address], after)
    ways_back = [_way_back(bond, *parts, gangs, there) for bond, parts in _of_bonds(bond_of, moving, units)]
    return Layout(tuple(gangs.values()), tuple(loose), tuple(way for way in ways_back if way is not None))


def _there(desired: Desired, observed: Observed, ties: Ties) -> Mapping[str, frozenset[str]]:
    """By node: which gangs run there now, or are to boot there."""
    found: dict[str, set[str]] = {}
    for item in ours(desired, observed):
        if item.container.owner is not None and item.container.is_running:
            found.setdefault(item.node, set()).add(item.container.owner.gang)
    for candidate in _moving(ties):
        for node in candidate.nodes:
            found.setdefault(node, set()).add(candidate.address)
    return {node: frozenset(gangs) for node, gangs in found.items()}


def _of_bonds(
    bond_of: Mapping[str, frozenset[str]], moving: Iterable[Candidate], units: Iterable[Unit]
) -> Iterator[tuple[frozenset[str], tuple[list[Candidate], list[Unit]]]]:
    """Each bond with its candidates and units, in the order they were given."""
    parts: dict[frozenset[str], tuple[list[Candidate], list[Unit]]] = {}
    for candidate in moving:
        parts.setdefault(bond_of[candidate.address], ([], []))[0].append(candidate)
    for unit in units:
        parts.setdefault(bond_of[unit.address], ([], []))[1].append(unit)
    return iter(sorted(parts.items(), key=lambda item: min(item[0])))


def _of_bond(bond: frozenset[str], steps: dict[str, tuple[Step, ...]]) -> tuple[Step, ...]:
    return tuple(step for address in sorted(bond) for step in steps.get(address, ()))


def _way_back(
    bond: frozenset[str],
    candidates: list[Candidate],
    units: list[Unit],
    gangs: dict[str, GangSteps],
    there: Mapping[str, frozenset[str]],
) -> Rollback | None:
    """None for what only stops: there is nothing to go back from."""
    if not candidates:
        return None
    taken = frozenset(node for node, on_it in there.items() if not on_it <= bond)
    undo = tuple(step for item in candidates for step in gangs[item.address].undo)
    return rollback_of(candidates, units, undo, taken)


def _builders(moving: Iterable[Candidate], staging: Staging) -> dict[str, Builder]:
    """One a gang. A lane on two clusters that share a node gets a revision, and so names, of its own on each."""
    taken: set[tuple[str, str]] = set()
    builders = {}
    for item in moving:
        revision = next_revision(item.view, taken)
        taken |= set(new_names(item.view, revision))
        builders[item.address] = Builder(item, staging, boot_reason(item.view, item.rule), revision)
    return builders


def _stops(ties: Ties, unit: Unit, after: tuple[Step, ...]) -> tuple[Step, ...]:
    return stop_steps(unit, room_reason(ties, unit), after)


def _gang_steps(
    ties: Ties,
    item: Candidate,
    builder: Builder,
    staged: dict[str, tuple[Step, ...]],
    stages: dict[str, tuple[Step, ...]],
    stops: dict[str, tuple[Step, ...]],
) -> GangSteps:
    if not item.boots:
        return prove_steps(builder)
    gone = [step for unit in ties.obstacles(item) for step in stops.get(unit.address, ())]
    if item.view.gang.shares:  # it boots when the lanes beside it that change have let go of their memory
        gone += [step for found in stops.values() for step in found if step.node in item.nodes and step not in gone]
    return boot_steps(builder, stages[item.address], tuple(gone), staged[item.address])


def _in_order(steps: Iterable[Step]) -> tuple[Step, ...]:
    order = list(Phase)
    return tuple(sorted(steps, key=lambda step: order.index(step.phase)))


def _deferred(ties: Ties) -> tuple[Deferred, ...]:
    refused = {item.address for item in ties.candidates if item.is_refused}
    waiting = {address: why for address, why in ties.blocked.items() if address not in refused}
    left = {unit.address: "what is left of it elsewhere " for unit in ties.units if unit.is_wanted}
    held = {address: why for address, why in ties.held.items() if address not in ties.blocked}
    kept = {address: f"{left.get(address, '')}stays: {why}" for address, why in held.items()}
    return tuple(Deferred(address, why) for address, why in sorted({**waiting, **kept}.items()))


def _displaced(ties: Ties) -> frozenset[str]:
    """The foreign containers that this plan stops, as a placement allows."""
    return frozenset(item.container.id for one in _moving(ties) if one.boots for item in one.view.displaced)


def _gangs(ties: Ties) -> tuple[Gang, ...]:
    return tuple(item.view.gang for item in _moving(ties))


def _empty_guard(desired: Desired, survey: Survey, options: PlanOptions) -> tuple[Refusal, ...]:
    """A spec that places nothing is more often a mistake than a wish."""
    running = [unit.address for unit in survey.units if unit.running]
    if desired.gangs or not running or options.allow_empty:
        return ()
    names = ", ".join(running)
    summary = f"the spec places no lane, and these run: {names}"
    return (Refusal("empty", "", None, summary, "to stop them all: `fleet down --all`"),)
