"""From what the nodes said to a report of drift: the lanes are asked, then everything is compared."""

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from reconciler import history, holds
from reconciler.core.checks import Judge
from reconciler.core.drift import ClusterDrawn, NodeDrawn, Report, findings, mute_storage, sift, worst_first
from reconciler.core.gate import Verdict
from reconciler.core.observed import Observed, Unknown
from reconciler.core.status import FleetStatus, lane_status, unwanted, views
from reconciler.execution.live_secrets import live_secrets, with_live_secrets
from reconciler.version import TOOL

if TYPE_CHECKING:
    from reconciler.fleet import Fleet

RECORD_S = 5.0
"""How long the record is waited for, in seconds."""

STORAGE_S = 10.0
"""How long the storage of a model is waited for, in seconds."""

NOBODY_ASKED: Mapping[str, Verdict] = MappingProxyType({})


@dataclass(frozen=True)
class Occasion:
    """When a report is made (seconds since 1970), and of which commit the spec is."""

    at_s: float
    commit: str | None = None


async def drift_report(fleet: "Fleet", observed: Observed, occasion: Occasion, *, probe: bool = False) -> Report:
    """The report of what was observed. Asks the heads of the lanes how they are; with `probe`, their questions, too."""
    past = asyncio.create_task(_remembered(fleet, occasion.at_s))
    health, (seen, mute), marks = await asyncio.gather(
        fleet.health(observed, probe=probe),
        fleet.with_running_models(observed, STORAGE_S),
        live_secrets(fleet.nodes, observed, fleet.desired.fleet, STORAGE_S),
    )
    seen = with_live_secrets(seen, marks)
    status = await fleet.status(observed, now_s=occasion.at_s, past=past, health=health)
    known = await past
    return report_of(fleet, seen, occasion, health, holds.shown(fleet, status, known.hands_off), mute)


async def _remembered(fleet: "Fleet", now_s: float) -> history.Remembered:
    """What is recorded, where it answers: a report is not held up by its history."""
    try:
        async with asyncio.timeout(RECORD_S):
            return await fleet.remembered(now_s)
    except TimeoutError:
        return history.Remembered()


def report_unasked(fleet: "Fleet", observed: Observed, occasion: Occasion) -> Report:
    """The report of what was observed alone: how lanes answer is not known."""
    plan = fleet.plan(observed, allow_empty=True)
    lanes = tuple(lane_status(view, None) for view in views(fleet.desired, observed))
    status = FleetStatus(fleet.desired.fleet, lanes, unwanted(fleet.desired, observed), plan.unknown, plan.foreign)
    return report_of(fleet, observed, occasion, NOBODY_ASKED, status)


def report_of(
    fleet: "Fleet",
    observed: Observed,
    occasion: Occasion,
    health: Mapping[str, Verdict],
    status: FleetStatus,
    mute: tuple[Unknown, ...] = (),
) -> Report:
    """Compared, sifted by the rules of the spec, the worst first. `mute`: nodes that did not tell of their models."""
    today = time.strftime("%Y-%m-%d", time.localtime(occasion.at_s))
    judge = Judge.of(fleet.desired, today, fleet.options().checks)
    found = (*findings(fleet.desired, observed, health, status, judge), *mute_storage(mute))
    sifted = sift(found, fleet.desired.ignores, today)
    clusters = tuple(ClusterDrawn(name, tuple(cluster.nodes)) for name, cluster in sorted(fleet.spec.clusters.items()))
    return Report(
        fleet=fleet.desired.fleet,
        at_s=occasion.at_s,
        commit=occasion.commit,
        spec=fleet.desired.spec_fingerprint,
        tool=TOOL,
        findings=worst_first(sifted.findings),
        suppressed=sifted.suppressed,
        expired=sifted.expired,
        status=status,
        clusters=clusters,
        nodes=tuple(_drawn(name, state) for name, state in sorted(observed.nodes.items())),
    )


def _drawn(name: str, state: object) -> NodeDrawn:
    if isinstance(state, Unknown):
        return NodeDrawn(name, "off" if state.is_declared else "unreachable", state.reason)
    return NodeDrawn(name, "reachable")
