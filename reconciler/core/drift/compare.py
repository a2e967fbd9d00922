"""The comparison: everything that is not as wanted, class by class, from the live objects.

Three things are held against each other: what the spec wants, what was applied (the labels of each container carry the
spec that it was made from), and what is there. Spec against applied is intent; applied against there is config,
identity and runtime; what lies below is host.
"""

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from reconciler.core.checks import Judge
from reconciler.core.classify import GangView
from reconciler.core.desired import Desired
from reconciler.core.drift import intent, life, machines, settings
from reconciler.core.drift.finding import Finding, Kind
from reconciler.core.gate import Health, Verdict
from reconciler.core.observed import Observed
from reconciler.core.status import FleetStatus, views

NO_CAUSES: Mapping[tuple[str, int], str] = MappingProxyType({})


def findings(
    desired: Desired,
    observed: Observed,
    health: Mapping[str, Verdict],
    status: FleetStatus | None = None,
    judge: Judge | None = None,
) -> tuple[Finding, ...]:
    """Everything that differs. `health`: what the head of each running gang said, by address.

    `status`, where there is one, knows why ranks ended and which versions were put aside; `judge`: the checks of the
    day.
    """
    judge = judge or Judge.of(desired)
    instead = _stand_ins(status)
    found = [*machines.silent(observed), *machines.foreign(desired, observed)]
    found += [*machines.checked(desired, observed, judge), *life.trials(desired.fleet, observed)]
    found += intent.not_wanted(desired, observed, frozenset(one for others in instead.values() for one in others))
    causes = _causes(status) if status else NO_CAUSES
    failed = {item.gang: item for item in status.quarantined} if status else {}
    for view in views(desired, observed):
        aside = failed.get(view.gang.address)
        if aside is not None and not view.unknown and not all(rank.is_up for rank in view.ranks):
            version = intent.put_aside(view, aside, instead.get(view.gang.address, ()))
            found += [version, *_hands(view, desired.fleet)]
        else:
            found += _gang(view, health.get(view.gang.address), causes, desired.fleet)
    order = list(Kind)
    return tuple(sorted(found, key=lambda item: (order.index(item.kind), item.address, item.field, item.found)))


def _stand_ins(status: FleetStatus | None) -> dict[str, tuple[str, ...]]:
    """Lanes that serve in the place of one that failed, by the address of that."""
    return {item.gang: item.stand_ins for item in status.lanes if item.stand_ins} if status else {}


def _causes(status: FleetStatus) -> dict[tuple[str, int], str]:
    return {
        (lane.gang, rank.rank): rank.detail for lane in status.lanes for rank in lane.ranks if rank.detail != "running"
    }


def _gang(
    view: GangView, verdict: Verdict | None, causes: Mapping[tuple[str, int], str], fleet: str
) -> Iterator[Finding]:
    if view.unknown:
        return
    address = view.gang.address
    yield from _hands(view, fleet)
    if not any(rank.found for rank in view.ranks):
        yield intent.absent(view)
        yield from (life.left_over(address, item) for item in view.strays)
        return
    yield from intent.moved_on(view)
    told = []
    boots = verdict is not None and verdict.health is Health.PROGRESSING
    for rank in view.ranks:
        yield from (item for item in life.rank_life(address, rank, causes) if not (boots and item.field == life.PROOF))
        told += [rank.present] if rank.present is not None and not rank.is_up else []
    for item in view.litter:
        if not any(item.container is present for present in told):  # a rank's own container is not left over, too
            yield life.left_over(address, item)
    yield from life.alone(view)
    yield from life.lane_health(address, verdict)


def _hands(view: GangView, fleet: str) -> Iterator[Finding]:
    """What somebody changed on the nodes."""
    for rank in view.ranks:
        yield from settings.rank_settings(view.gang.address, rank)
    yield from settings.renamed(view, fleet)
