"""The fleet as it is now, on three axes that are never merged: sync, health, reach."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from reconciler.core.classify import GangView, RankView, Situation, by_gang, classify, ours, view_of
from reconciler.core.desired import Desired, Gang
from reconciler.core.ends import End, blamed, ends_of
from reconciler.core.explain import boot_reason, describe_end
from reconciler.core.gate import Health, Verdict, judge_ranks
from reconciler.core.host import Clock
from reconciler.core.observed import Observed, Placed, Unknown
from reconciler.core.plan import Foreign
from reconciler.core.unknown import unreachable
from reconciler.core.withhold import Failed, Held


class Sync(StrEnum):
    """Whether what runs is what the spec says."""

    IN_SYNC = "in-sync"
    OUT_OF_SYNC = "out-of-sync"
    UNKNOWN = "unknown"


class Reach(StrEnum):
    """Whether the node answers."""

    REACHABLE = "reachable"
    UNREACHABLE = "unreachable"
    OFF = "powered-off"  # as the spec declares it


@dataclass(frozen=True)
class RankStatus:
    """One rank on the three axes."""

    rank: int
    node: str
    role: str
    container: str | None
    sync: Sync
    health: Health
    reach: Reach
    detail: str = ""


@dataclass(frozen=True)
class LaneStatus:
    """One wanted lane on the three axes, and where it answers.

    `last_failure`: what the newest recorded apply of it says, when that failed and the lane is not healthy. `phase`: of
    a boot that is under way; `booting_s`: for how long it has been, in seconds, None where that is not known;
    `usual_s`: how long that phase alone usually takes, where history knows. `stand_ins`: the lanes that serve in its
    place since this version of it failed.
    """

    gang: str
    lane: str
    cluster: str
    url: str
    served_name: str | None
    sync: Sync
    health: Health
    reach: Reach
    detail: str
    ranks: tuple[RankStatus, ...]
    last_failure: str = ""
    phase: str = ""
    booting_s: float | None = None
    usual_s: float | None = None
    stand_ins: tuple[str, ...] = ()


@dataclass(frozen=True)
class Unwanted:
    """Containers of a lane that no placement wants. `instead_of`: the wanted lane that failed, and for which it serves
    again."""

    gang: str
    nodes: tuple[str, ...]
    running: int
    instead_of: str = ""


@dataclass(frozen=True)
class FleetStatus:
    """Everything there is to say about a fleet now. `holds`, `quarantined`: what apply keeps its hands off.

    `suspended`: who keeps the agent of `fleet gitops` from acting, why and until when; empty when nobody does.
    """

    fleet: str
    lanes: tuple[LaneStatus, ...]
    unwanted: tuple[Unwanted, ...]
    unknown: tuple[Unknown, ...]
    foreign: tuple[Foreign, ...]
    holds: tuple[Held, ...] = ()
    quarantined: tuple[Failed, ...] = ()
    suspended: str = ""


def only(found: FleetStatus, nodes: frozenset[str] | None, gangs: frozenset[str] | None) -> FleetStatus:
    """The part about these nodes and gangs; None: about all of them."""
    if nodes is None or gangs is None:
        return found
    lanes = tuple(lane for lane in found.lanes if lane.gang in gangs)
    kept = {lane.gang: {rank.node for rank in lane.ranks} for lane in lanes}
    return replace(
        found,
        lanes=lanes,
        unwanted=tuple(item for item in found.unwanted if not nodes.isdisjoint(item.nodes)),
        unknown=tuple(item for item in found.unknown if item.node in nodes),
        foreign=tuple(item for item in found.foreign if item.node in nodes),
        holds=tuple(item for item in found.holds if any(item.is_on(gang, on) for gang, on in kept.items())),
        quarantined=tuple(item for item in found.quarantined if item.gang in kept),
    )


def views(desired: Desired, observed: Observed) -> tuple[GangView, ...]:
    """Every wanted gang as it is found, by address."""
    groups = by_gang(ours(desired, observed))
    gangs = sorted(desired.gangs, key=lambda gang: gang.address)
    return tuple(view_of(gang, groups.get(gang.address, ()), observed, desired.retain) for gang in gangs)


def unwanted(desired: Desired, observed: Observed) -> tuple[Unwanted, ...]:
    """Lanes that are there and that nobody wants."""
    wanted = {gang.address for gang in desired.gangs}
    groups = by_gang(ours(desired, observed))
    return tuple(_unwanted(address, found) for address, found in groups.items() if address not in wanted)


def _unwanted(address: str, found: tuple[Placed, ...]) -> Unwanted:
    nodes = tuple(sorted({item.node for item in found}))
    return Unwanted(address, nodes, sum(item.container.is_running for item in found))


def lane_status(view: GangView, verdict: Verdict | None) -> LaneStatus:
    """One lane. `verdict` is the head's word; None when nobody asked it (a rank is down, or a node is unknown)."""
    gang = view.gang
    said = verdict.detail if verdict else ""
    verdict = verdict or _verdict_of_ranks(view)
    rule = classify(view)
    sync = _sync(rule.situation)
    known_why = sync is not Sync.OUT_OF_SYNC or rule.situation in {Situation.BROKEN, Situation.STOPPED}
    detail = verdict.detail if known_why else "; ".join(filter(None, (boot_reason(view, rule), said)))
    return LaneStatus(
        gang=gang.address,
        lane=gang.lane,
        cluster=gang.cluster,
        url=gang.url,
        served_name=gang.gate.served_name,
        sync=sync,
        health=verdict.health,
        reach=_reach(view.unknown),
        detail=detail,
        phase=verdict.phase if verdict.health is Health.PROGRESSING else "",
        ranks=_unread_ranks(view) if view.unknown else tuple(_rank_status(rank) for rank in view.ranks),
    )


def _reach(unknown: tuple[Unknown, ...]) -> Reach:
    if unreachable(unknown):
        return Reach.UNREACHABLE
    return Reach.OFF if unknown else Reach.REACHABLE


def started_at(view: GangView) -> str:
    """When the last rank of a gang was started (RFC 3339); empty when none ever was."""
    return max((rank.present.started_at for rank in view.ranks if rank.present), default="")


def with_failure(lane: LaneStatus, failures: Mapping[str, str]) -> LaneStatus:
    """The lane with what the last apply says of it, unless it is healthy now. `failures`: by gang."""
    if lane.health is Health.HEALTHY:
        return lane
    return replace(lane, last_failure=failures.get(lane.gang, ""))


def with_times(lane: LaneStatus, booting_s: float | None, usual: Mapping[str, float]) -> LaneStatus:
    """A lane that boots with for how long it has, and how long its phase usually takes (both in seconds)."""
    return replace(lane, booting_s=booting_s, usual_s=usual.get(lane.phase)) if lane.phase else lane


def with_ends(lane: LaneStatus, ends: tuple[End, ...]) -> LaneStatus:
    """The lane with the reason why ranks of it ended, as far as `ends`, with their logs, tell."""
    found = blamed(ends)
    if found is None:
        return lane
    end, cause = found
    told = f"rank {end.rank} on {end.node} {describe_end(end.container)}"
    before, _, after = lane.detail.partition(told)
    detail = f"{before}{told}: {cause.told}{after}" if before != lane.detail else f"{lane.detail}; {told}: {cause.told}"
    titles = {item.rank: f": {own.title}" for item in ends if (own := item.cause)}
    ranks = tuple(replace(rank, detail=f"{rank.detail}{titles.get(rank.rank, '')}") for rank in lane.ranks)
    return replace(lane, detail=detail, ranks=ranks)


def ended(view: GangView) -> tuple[End, ...]:
    """The ranks of a wanted lane that ended, the first one first; none of a gang that cannot be read."""
    return () if view.unknown else ends_of(view.gang, (rank.present for rank in view.ranks))


def clocks(observed: Observed) -> dict[str, Clock]:
    """The clock of each node that told it."""
    known = ((name, observed.facts(name)) for name in observed.nodes)
    return {name: facts.host.clock for name, facts in known if facts is not None and facts.host.clock is not None}


def can_be_asked(view: GangView) -> bool:
    """Whether every rank has a running container, so that asking the head makes sense."""
    return bool(view.ranks) and all(rank.present and rank.present.state == "running" for rank in view.ranks)


def running_refs(view: GangView) -> Mapping[int, str]:
    """The running container of each rank, by id."""
    return {rank.rank.index: rank.present.id for rank in view.ranks if rank.present}


def _verdict_of_ranks(view: GangView) -> Verdict:
    if view.unknown:
        names = ", ".join(f"{state.node}: {state.reason}" for state in view.unknown)
        return Verdict(Health.UNKNOWN, "reach", names)
    found = tuple(rank.present for rank in view.ranks)
    if all(item is None for item in found):
        return Verdict(Health.MISSING, "ranks", "no rank is there")
    return judge_ranks(view.gang, found) or Verdict(Health.UNKNOWN, "ranks", "the head was not asked")


def _sync(situation: Situation) -> Sync:
    if situation is Situation.UNKNOWN:
        return Sync.UNKNOWN
    return Sync.IN_SYNC if situation in {Situation.IN_SYNC, Situation.LITTERED} else Sync.OUT_OF_SYNC


RANK_HEALTH = {"running": Health.HEALTHY, "restarting": Health.CRASH_LOOPING}
"""By the state of the rank's container; any other is degraded."""


def _rank_status(view: RankView) -> RankStatus:
    present = view.present
    health = RANK_HEALTH.get(present.state, Health.DEGRADED) if present is not None else Health.MISSING
    return RankStatus(
        rank=view.rank.index,
        node=view.rank.node,
        role=view.rank.role,
        container=present.name if present else None,
        sync=Sync.IN_SYNC if view.is_up else Sync.OUT_OF_SYNC,
        health=health,
        reach=Reach.REACHABLE,
        detail="running" if health is Health.HEALTHY else describe_end(present),
    )


def _unread_ranks(view: GangView) -> tuple[RankStatus, ...]:
    lost = {state.node: state for state in view.unknown}
    return tuple(_unread_rank(view.gang, index, lost) for index in range(len(view.gang.ranks)))


def _unread_rank(gang: Gang, index: int, lost: Mapping[str, Unknown]) -> RankStatus:
    rank = gang.ranks[index]
    own = lost.get(rank.node)
    reach = _reach((own,) if own else ())
    detail = own.reason if own else "not judged: another node of the gang cannot be read"
    return RankStatus(rank.index, rank.node, rank.role, None, Sync.UNKNOWN, Health.UNKNOWN, reach, detail)
