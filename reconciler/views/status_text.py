"""The status of a fleet as text: one line a lane, one a rank."""

from collections import Counter
from collections.abc import Iterator

from reconciler.core.gate import Health
from reconciler.core.phases import WORDS
from reconciler.core.status import FleetStatus, LaneStatus, Sync
from reconciler.views.words import count, duration, one_line


def status_text(status: FleetStatus) -> str:
    """Everything, worst news visible at the left edge."""
    return "".join(f"{one_line(line)}\n" for line in _lines(status))


def _lines(status: FleetStatus) -> Iterator[str]:
    counts = Counter(lane.health for lane in status.lanes)
    told = ", ".join(f"{counts[health]} {health}" for health in Health if counts[health])
    yield f"fleet {status.fleet} · {count(len(status.lanes), 'lane')} wanted{f': {told}' if told else ''}"
    for state in status.unknown:
        yield f"  {'-' if state.is_declared else '!'} {state.node}: {state.reason}"
        yield from (f"      {line}" for line in state.hint.splitlines())
    for lane in status.lanes:
        yield ""
        yield from _lane(lane)
    if status.unwanted or status.foreign or status.holds or status.quarantined or status.suspended:
        yield ""
    for item in status.unwanted:
        told = f"serves instead of {item.instead_of}" if item.instead_of else "not wanted"
        yield f"{told}: {item.gang} on {' '.join(item.nodes)} ({item.running} running)"
    for foreign in status.foreign:
        yield f"foreign: {foreign.name} on {foreign.node}"
    if status.suspended:
        yield f"the agent does nothing: {status.suspended}"
    for hold in status.holds:
        yield f"held: {hold} (hold {hold.id})"
    for failed in status.quarantined:
        yield f"not tried again: {failed.gang}: {failed}"


def _mark(lane: LaneStatus) -> str:
    """What an eye that runs down the left edge stops at."""
    if lane.health is Health.HEALTHY and lane.sync is Sync.IN_SYNC:
        return "ok"
    return ".." if lane.health is Health.PROGRESSING and lane.sync is Sync.IN_SYNC else "!!"


def _lane(lane: LaneStatus) -> Iterator[str]:
    yield f"{_mark(lane)} {lane.gang}: {lane.health}, {lane.sync}, {lane.reach}"
    if lane.phase in WORDS:
        usual = "" if lane.usual_s is None else f" (usually {duration(round(lane.usual_s))})"
        took = "" if lane.booting_s is None else f", {duration(round(lane.booting_s))} since its start"
        yield f"    {WORDS[lane.phase]}{usual}{took}"
    if lane.detail:
        yield f"    {lane.detail}"
    if lane.last_failure:
        yield f"    the last apply: {lane.last_failure}"
    yield f"    {lane.url}{f'  model {lane.served_name}' if lane.served_name else ''}"
    width = max((len(rank.node) for rank in lane.ranks), default=0)
    for rank in lane.ranks:
        sync = "" if rank.sync == "in-sync" else f", {rank.sync}"
        yield f"    rank {rank.rank} {rank.role:<6} {rank.node:<{width}} {rank.health}{sync}: {rank.detail}"
