"""Who serves in the place of a version that failed and was put aside: an earlier one of its lane, or another lane."""

from collections.abc import Iterable
from dataclasses import replace

from reconciler.core.gate import Health
from reconciler.core.status import FleetStatus, LaneStatus, Sync, Unwanted
from reconciler.core.withhold import Failed


def with_put_aside(status: FleetStatus, failed: Iterable[Failed]) -> FleetStatus:
    """The status that knows which versions that the spec asks for are put aside, and what serves instead.

    A lane that was rolled back to stands where it should: it is not one that nobody wants, nor is the other broken.
    """
    aside = {item.gang: item for item in failed}
    lanes = tuple(_told(lane, status.unwanted) if _is_aside(lane, aside) else lane for lane in status.lanes)
    instead = {other: lane.gang for lane in lanes for other in lane.stand_ins}
    left = tuple(replace(item, instead_of=instead.get(item.gang, "")) for item in status.unwanted)
    return replace(status, lanes=lanes, unwanted=left, quarantined=tuple(aside.values()))


def _is_aside(lane: LaneStatus, aside: dict[str, Failed]) -> bool:
    return lane.gang in aside and lane.sync is Sync.OUT_OF_SYNC


def _told(lane: LaneStatus, unwanted: tuple[Unwanted, ...]) -> LaneStatus:
    if any(rank.health is Health.HEALTHY for rank in lane.ranks):
        return replace(lane, detail="this version failed and was put aside; the one before it serves")
    nodes = {rank.node for rank in lane.ranks}
    others = tuple(item.gang for item in unwanted if item.running and nodes & set(item.nodes))
    if not others:
        return lane
    detail = f"this version failed and was put aside; {served_by(others)} in its place"
    return replace(lane, health=Health.MISSING, detail=detail, stand_ins=others)


def served_by(others: tuple[str, ...]) -> str:
    """ "c/a serves", "c/a, c/b serve"."""
    return f"{', '.join(others)} {'serves' if len(others) == 1 else 'serve'}"
