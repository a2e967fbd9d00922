"""`make_plan`: the one door from what is wanted and what is there to what would be done.

Read it top down: find what exists, classify every wanted gang, tie together who makes room for whom, then lay out the
steps. Nothing here can touch a node, wait, or ask for the time.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from reconciler.core import remarks
from reconciler.core.admission import CHECKS, PROOF_CHECKS, Case, refusals
from reconciler.core.classify import GangView, Placed, Situation, by_gang, classify, ours, view_of
from reconciler.core.desired import Desired, Gang
from reconciler.core.diff import FieldChange
from reconciler.core.explain import boot_notes, boot_reason, found_fields
from reconciler.core.observed import Observed, Source
from reconciler.core.plan import SCHEMA, Change, Deferred, Kind, Outage, Phase, Plan, Refusal, Step, sealed
from reconciler.core.steps import (
    Builder,
    GangSteps,
    boot_steps,
    new_names,
    next_revision,
    prove_steps,
    remove_steps,
    stop_steps,
)
from reconciler.core.units import Candidate, Ties, Unit, tie

KINDS = {
    Situation.ABSENT: Kind.BOOT,
    Situation.STOPPED: Kind.BOOT,
    Situation.CHANGED: Kind.REPLACE,
    Situation.DRIFTED: Kind.REPLACE,
    Situation.BROKEN: Kind.REPAIR,
    Situation.UNPROVED: Kind.PROVE,
}


@dataclass(frozen=True)
class PlanOptions:
    """What the caller says beside the spec. `allow_empty`: a fleet without any lane is really meant."""

    tool: str = "fleet"
    commit: str | None = None
    allow_empty: bool = False


def make_plan(desired: Desired, observed: Observed, options: PlanOptions | None = None) -> Plan:
    """The difference between `desired` and `observed`, as a frozen plan.

    Pure and deterministic: the same values give the same bytes, whatever order they were built in.
    """
    options = options or PlanOptions()
    survey = _survey(desired, observed)
    ties = tie(survey.candidates, survey.units)
    steps = _lay_out(ties, observed)
    found_refusals = survey.refusals + _empty_guard(desired, survey, options)
    changes = _changes(ties, survey, observed.sources)
    return sealed(
        Plan(
            schema=SCHEMA,
            tool=options.tool,
            fleet=desired.fleet,
            spec=desired.spec_fingerprint,
            commit=options.commit,
            observed=remarks.digests(observed),
            unknown=remarks.unknown(observed),
            refusals=found_refusals,
            deferred=_deferred(ties),
            outages=_outages(ties),
            changes=changes,
            steps=_in_order((*steps.loose, *(step for gang in steps.gangs for step in gang.all()))),
            aborts=tuple(step for gang in steps.gangs for step in gang.abort),
            gangs=_gangs(ties),
            platforms=tuple((node.name, node.platform) for node in sorted(desired.nodes, key=lambda item: item.name)),
            foreign=remarks.foreign(desired, observed),
            unchanged=survey.unchanged,
        )
    )


@dataclass(frozen=True)
class Survey:
    """Everything wanted and found, classified."""

    candidates: tuple[Candidate, ...]
    units: tuple[Unit, ...]
    refusals: tuple[Refusal, ...]
    unchanged: tuple[str, ...]


def _survey(desired: Desired, observed: Observed) -> Survey:
    groups = by_gang(ours(desired, observed))
    gangs = sorted(desired.gangs, key=lambda gang: gang.address)
    views = [view_of(gang, groups.get(gang.address, ()), observed) for gang in gangs]
    candidates: list[Candidate] = []
    refused: list[Refusal] = []
    unchanged: list[str] = []
    units: list[Unit] = []
    for view in views:
        candidate, found = _candidate(desired, observed, view)
        refused += found
        units += _past(candidate)
        if candidate.rule.situation in {Situation.IN_SYNC, Situation.LITTERED}:
            unchanged.append(candidate.address)
        else:
            candidates.append(candidate)
    wanted = {gang.address for gang in gangs}
    units += [_unwanted(desired, address, placed) for address, placed in groups.items() if address not in wanted]
    units.sort(key=lambda unit: unit.address)
    return Survey(tuple(candidates), tuple(units), tuple(refused), tuple(unchanged))


def _candidate(desired: Desired, observed: Observed, view: GangView) -> tuple[Candidate, tuple[Refusal, ...]]:
    rule = classify(view)
    candidate = Candidate(view, rule, is_refused=False)
    checks = CHECKS if candidate.boots else PROOF_CHECKS if rule.situation is Situation.UNPROVED else ()
    found = refusals(Case(desired, observed, view), checks)
    return Candidate(view, rule, bool(found)), found


def _past(candidate: Candidate) -> list[Unit]:
    """The gang's own earlier containers, and for one that boots again, all that runs of it."""
    view = candidate.view
    stray = tuple(item for item in view.spare if item.container.is_running)
    running = view.holding if candidate.boots else stray
    if not running and not view.spare:
        return []
    return [Unit(candidate.address, running, view.spare, candidate.nodes)]


def _unwanted(desired: Desired, address: str, placed: tuple[Placed, ...]) -> Unit:
    running = tuple(item for item in placed if item.container.is_running)
    if address in desired.taken_down:
        return Unit(address, running, placed, why="taken down by hand; the spec places it")
    return Unit(address, running, placed)


@dataclass(frozen=True)
class Layout:
    """Steps by gang, and those that belong to no gang that boots."""

    gangs: tuple[GangSteps, ...]
    loose: tuple[Step, ...]


def _lay_out(ties: Ties, observed: Observed) -> Layout:
    """Stage every gang that goes on; stop units behind the stages of all that replace them; then boot and retire."""
    moving = [item for item in ties.candidates if item.address not in ties.blocked]
    builders = _builders(moving, observed)
    stages = {item.address: builders[item.address].stage() if item.boots else () for item in moving}
    units = [unit for unit in ties.units if unit.address not in ties.held]
    stops = {unit.address: _stops(ties, unit, stages) for unit in units}
    gangs = {item.address: _gang_steps(ties, item, builders[item.address], stages, stops) for item in moving}
    loose = [step for found in stops.values() for step in found]
    for unit in units:
        confirms = [
            step for item in ties.replacements(unit) if item.address in gangs for step in gangs[item.address].confirm
        ]
        if _may_be_removed(ties, unit):
            loose += remove_steps(unit, _room_reason(ties, unit), (*stops[unit.address], *confirms))
    return Layout(tuple(gangs.values()), tuple(loose))


def _builders(moving: Iterable[Candidate], observed: Observed) -> dict[str, Builder]:
    """One a gang. A lane on two clusters that share a node gets a revision, and so names, of its own on each."""
    taken: set[tuple[str, str]] = set()
    builders = {}
    for item in moving:
        revision = next_revision(item.view, taken)
        taken |= set(new_names(item.view, revision))
        builders[item.address] = Builder(item, observed, boot_reason(item.view, item.rule), revision)
    return builders


def _may_be_removed(ties: Ties, unit: Unit) -> bool:
    """Not while a gang that takes its place is not going to be confirmed by this plan."""
    return all(item.address not in ties.blocked for item in ties.replacements(unit))


def _stops(ties: Ties, unit: Unit, stages: dict[str, tuple[Step, ...]]) -> tuple[Step, ...]:
    after = tuple(step for item in ties.replacements(unit) for step in stages.get(item.address, ()))
    return stop_steps(unit, _room_reason(ties, unit), after)


def _gang_steps(
    ties: Ties,
    item: Candidate,
    builder: Builder,
    stages: dict[str, tuple[Step, ...]],
    stops: dict[str, tuple[Step, ...]],
) -> GangSteps:
    if not item.boots:
        return prove_steps(builder)
    gone = [step for unit in ties.obstacles(item) for step in stops.get(unit.address, ())]
    if item.view.gang.shares:  # it boots when the lanes beside it that change have let go of their memory
        gone += [step for found in stops.values() for step in found if step.node in item.nodes and step not in gone]
    return boot_steps(builder, stages[item.address], tuple(gone))


def _room_reason(ties: Ties, unit: Unit) -> str:
    """Why a unit goes."""
    others = [item.address for item in ties.replacements(unit) if item.address != unit.address]
    if unit.is_wanted:
        boots = any(item.address == unit.address and item.boots for item in ties.candidates)
        return "boots again" if boots and unit.running else "an earlier generation, or on another node"
    if others:
        return f"makes room for {', '.join(others)}"
    return unit.why


def _in_order(steps: Iterable[Step]) -> tuple[Step, ...]:
    order = list(Phase)
    return tuple(sorted(steps, key=lambda step: order.index(step.phase)))


def _changes(ties: Ties, survey: Survey, sources: Mapping[str, Source]) -> tuple[Change, ...]:
    """What happens to each gang: those that stop first, then those that boot."""
    gone = [_unit_change(ties, unit) for unit in ties.units if unit.address not in ties.held and not unit.is_wanted]
    litter = [_litter_change(unit) for unit in ties.units if unit.is_wanted and unit.address in survey.unchanged]
    moving = [_gang_change(ties, item, sources) for item in ties.candidates if item.address not in ties.blocked]
    return tuple(change for change in gone if change) + tuple(litter) + tuple(moving)


def _unit_change(ties: Ties, unit: Unit) -> Change | None:
    if not unit.running and not _may_be_removed(ties, unit):
        return None
    kind = Kind.STOP if unit.running else Kind.CLEAN
    room_for = tuple(item.address for item in ties.replacements(unit))
    return Change(unit.address, kind, _room_reason(ties, unit), unit.nodes, made_room_for=room_for)


def _litter_change(unit: Unit) -> Change:
    return Change(
        unit.address, Kind.CLEAN, "containers of earlier generations, or on other nodes, are left", unit.nodes
    )


def _gang_change(ties: Ties, item: Candidate, sources: Mapping[str, Source]) -> Change:
    gang = item.view.gang
    running = [unit.address for unit in ties.obstacles(item) if unit.running]
    return Change(
        gang=item.address,
        kind=KINDS[item.rule.situation],
        reason=boot_reason(item.view, item.rule),
        nodes=gang.nodes,
        fields=_fields(item),
        notes=boot_notes(item.view, sources),
        dark=tuple(sorted(running)),
        boot_budget_s=gang.gate.boot_s,
    )


def _fields(item: Candidate) -> tuple[FieldChange, ...]:
    return found_fields(item.view) if item.rule.situation in {Situation.CHANGED, Situation.DRIFTED} else ()


def _outages(ties: Ties) -> tuple[Outage, ...]:
    """Where nothing answers between cut and confirm, for each gang that boots where something runs now."""
    found = []
    for item in ties.candidates:
        running = [unit for unit in ties.obstacles(item) if unit.running]
        if item.boots and item.address not in ties.blocked and running:
            placed = [placed for unit in running for placed in unit.running]
            stops = tuple(sorted(unit.address for unit in running))
            stop_s = max(one.container.owner.stop_grace_s for one in placed if one.container.owner)
            found.append(Outage(item.address, tuple(sorted(item.nodes)), stops, stop_s, item.view.gang.gate.boot_s))
    return tuple(found)


def _deferred(ties: Ties) -> tuple[Deferred, ...]:
    refused = {item.address for item in ties.candidates if item.is_refused}
    waiting = {address: why for address, why in ties.blocked.items() if address not in refused}
    left = {unit.address: "what is left of it elsewhere " for unit in ties.units if unit.is_wanted}
    held = {address: why for address, why in ties.held.items() if address not in ties.blocked}
    kept = {address: f"{left.get(address, '')}stays: {why}" for address, why in held.items()}
    return tuple(Deferred(address, why) for address, why in sorted({**waiting, **kept}.items()))


def _gangs(ties: Ties) -> tuple[Gang, ...]:
    return tuple(item.view.gang for item in ties.candidates if item.address not in ties.blocked)


def _empty_guard(desired: Desired, survey: Survey, options: PlanOptions) -> tuple[Refusal, ...]:
    """A spec that places nothing is more often a mistake than a wish."""
    running = [unit.address for unit in survey.units if unit.running]
    if desired.gangs or not running or options.allow_empty:
        return ()
    names = ", ".join(running)
    summary = f"the spec places no lane, and these run: {names}"
    return (Refusal("empty", "", None, summary, "to stop them all: `fleet down --all`"),)
