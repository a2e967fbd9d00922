"""What happens to each gang, as people count it, and where nothing answers meanwhile. Nothing is decided here."""

from collections.abc import Collection, Iterator, Mapping

from reconciler.core.classify import Situation
from reconciler.core.diff import FieldChange
from reconciler.core.explain import boot_notes, boot_reason, found_fields
from reconciler.core.observed import Source
from reconciler.core.plan import Change, Kind, Outage
from reconciler.core.steps import FOREIGN_GRACE_S
from reconciler.core.units import Candidate, Ties, Unit

KINDS = {
    Situation.ABSENT: Kind.BOOT,
    Situation.STOPPED: Kind.BOOT,
    Situation.CHANGED: Kind.REPLACE,
    Situation.DRIFTED: Kind.REPLACE,
    Situation.BROKEN: Kind.REPAIR,
    Situation.UNPROVED: Kind.PROVE,
}


def may_be_removed(ties: Ties, unit: Unit) -> bool:
    """Not while a gang that takes its place is not going to be confirmed by this plan."""
    return all(item.address not in ties.blocked for item in ties.replacements(unit))


def room_reason(ties: Ties, unit: Unit) -> str:
    """Why a unit goes."""
    others = [item.address for item in ties.replacements(unit) if item.address != unit.address]
    if unit.is_wanted:
        boots = any(item.address == unit.address and item.boots for item in ties.candidates)
        return "boots again" if boots and unit.running else "an earlier generation, or on another node"
    if others:
        return f"makes room for {', '.join(others)}"
    return unit.why


def changes(ties: Ties, unchanged: Collection[str], sources: Mapping[str, Source]) -> tuple[Change, ...]:
    """What happens to each gang: those that stop first, then those that boot."""
    gone = [_unit_change(ties, unit) for unit in ties.units if unit.address not in ties.held and not unit.is_wanted]
    litter = [_litter_change(unit) for unit in ties.units if unit.is_wanted and unit.address in unchanged]
    moving = [_gang_change(ties, item, sources) for item in ties.candidates if item.address not in ties.blocked]
    return tuple(change for change in gone if change) + tuple(litter) + tuple(moving)


def _unit_change(ties: Ties, unit: Unit) -> Change | None:
    if not unit.running and not may_be_removed(ties, unit):
        return None
    kind = Kind.STOP if unit.running else Kind.CLEAN
    room_for = tuple(item.address for item in ties.replacements(unit))
    return Change(unit.address, kind, room_reason(ties, unit), unit.nodes, made_room_for=room_for)


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
        notes=(*_displacing(item), *boot_notes(item.view, sources)),
        dark=tuple(sorted(running)),
        boot_budget_s=gang.gate.boot_s,
    )


def _displacing(item: Candidate) -> Iterator[str]:
    """What is nobody's and goes all the same."""
    if item.boots:
        for placed in item.view.displaced:
            yield f"stops {placed.container.name} on {placed.node}, which fleet did not make, as `may_stop` allows"


def _fields(item: Candidate) -> tuple[FieldChange, ...]:
    return found_fields(item.view) if item.rule.situation in {Situation.CHANGED, Situation.DRIFTED} else ()


def outages(ties: Ties) -> tuple[Outage, ...]:
    """Where nothing answers between cut and confirm, for each gang that boots where something runs now."""
    found = []
    for item in ties.candidates:
        running = [unit for unit in ties.obstacles(item) if unit.running]
        foreign = [f"{placed.container.name} on {placed.node}" for placed in item.view.displaced]
        if item.boots and item.address not in ties.blocked and (running or foreign):
            placed = [placed for unit in running for placed in unit.running]
            stops = tuple(sorted(unit.address for unit in running)) + tuple(sorted(foreign))
            stop_s = max(
                (one.container.owner.stop_grace_s for one in placed if one.container.owner), default=FOREIGN_GRACE_S
            )
            found.append(Outage(item.address, tuple(sorted(item.nodes)), stops, stop_s, item.view.gang.gate.boot_s))
    return tuple(found)
