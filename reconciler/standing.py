"""How the fleet stands: what was observed, what the lanes answer, why ranks ended, and what was recorded."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, TypeVar

from reconciler import history
from reconciler.core.classify import GangView
from reconciler.core.estimates import History
from reconciler.core.gate import Verdict
from reconciler.core.observed import Observed
from reconciler.core.status import (
    FleetStatus,
    can_be_asked,
    clocks,
    ended,
    lane_status,
    running_refs,
    started_at,
    unwanted,
    views,
    with_ends,
    with_failure,
    with_times,
)
from reconciler.execution.clocks import in_order
from reconciler.execution.gate import GangWatch, all_seen
from reconciler.execution.postmortem import ends_read
from reconciler.nodes.times import epoch_s

if TYPE_CHECKING:
    from reconciler.fleet import Fleet

T = TypeVar("T")


async def asked(
    fleet: "Fleet",
    observed: Observed,
    *,
    probe: bool,
    heard: Callable[[str, Verdict], object] = lambda gang, verdict: None,
) -> dict[str, Verdict]:
    """See `Fleet.health`. `heard` is told of each at once: for who may give up."""
    found = [view for view in views(fleet.desired, observed) if can_be_asked(view)]
    watches = [GangWatch(fleet.nodes, view.gang, running_refs(view)) for view in found]
    return await all_seen(watches, probe=probe, heard=heard)


async def standing(
    fleet: "Fleet",
    observed: Observed,
    *,
    probe: bool,
    now_s: float | None,
    past: Awaitable[history.Remembered] | None,
    health: Mapping[str, Verdict] | None,
) -> FleetStatus:
    """See `Fleet.status`."""
    found = views(fleet.desired, observed)
    said, known, ends = await asyncio.gather(
        fleet.health(observed, probe=probe) if health is None else _at_hand(health),
        past or fleet.remembered(now_s or time.time()),
        asyncio.gather(*(ends_read(fleet.nodes, in_order(ended(view), clocks(observed))) for view in found)),
    )
    lanes = tuple(
        with_failure(with_ends(lane_status(view, said.get(view.gang.address)), why), known.failures)
        for view, why in zip(found, ends, strict=True)
    )
    took = History(known.took)
    lanes = tuple(
        with_times(lane, _running_s(view, observed, now_s), took.phases(view.gang, fleet.node_classes))
        for view, lane in zip(found, lanes, strict=True)
    )
    plan = fleet.plan(observed, allow_empty=True)
    return FleetStatus(fleet.desired.fleet, lanes, unwanted(fleet.desired, observed), plan.unknown, plan.foreign)


async def _at_hand(value: T) -> T:
    return value


def _running_s(view: GangView, observed: Observed, now_s: float | None) -> float | None:
    """For how long the gang has been running, by the clock of its head; None where that cannot be told."""
    facts, started = observed.facts(view.gang.nodes[0]), started_at(view)
    if now_s is None or facts is None or facts.host.clock is None or not started:
        return None
    return max(0.0, now_s + facts.host.clock.offset_s - epoch_s(started))
