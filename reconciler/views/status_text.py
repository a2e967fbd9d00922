"""The status of a fleet as text: one line a lane, one a rank."""

from collections.abc import Iterator

from reconciler.core.status import FleetStatus, LaneStatus
from reconciler.views.words import count


def status_text(status: FleetStatus) -> str:
    """Everything, worst news visible at the left edge."""
    return "\n".join(_lines(status)) + "\n"


def _lines(status: FleetStatus) -> Iterator[str]:
    yield f"fleet {status.fleet} · {count(len(status.lanes), 'lane')} wanted"
    for state in status.unknown:
        yield f"  ! {state.node}: {state.reason}"
        yield from (f"      {line}" for line in state.hint.splitlines())
    for lane in status.lanes:
        yield ""
        yield from _lane(lane)
    if status.unwanted or status.foreign:
        yield ""
    for item in status.unwanted:
        yield f"not wanted: {item.gang} on {' '.join(item.nodes)} ({item.running} running)"
    for foreign in status.foreign:
        yield f"foreign: {foreign.name} on {foreign.node}"


def _lane(lane: LaneStatus) -> Iterator[str]:
    yield f"{lane.gang}: {lane.health}, {lane.sync}, {lane.reach}"
    if lane.detail:
        yield f"    {lane.detail}"
    yield f"    {lane.url}{f'  model {lane.served_name}' if lane.served_name else ''}"
    for rank in lane.ranks:
        sync = "" if rank.sync == "in-sync" else f", {rank.sync}"
        yield f"    rank {rank.rank} {rank.role:<6} {rank.node:<12} {rank.health}{sync}: {rank.detail}"
