"""From what the nodes said to a report of drift: the lanes are asked, then everything is compared."""

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from reconciler import history, holds
from reconciler.core.checks import Judge
from reconciler.core.drift import ClusterDrawn, NodeDrawn, Report, findings, mute_storage, sift, worst_first
from reconciler.core.drift.remedies import true_remedies
from reconciler.core.gate import Verdict
from reconciler.core.observed import Observed, Unknown
from reconciler.core.status import FleetStatus, can_be_asked, lane_status, unwanted, views
from reconciler.execution.live_secrets import live_secrets, with_live_secrets
from reconciler.standing import asked
from reconciler.version import TOOL

if TYPE_CHECKING:
    from reconciler.fleet import Fleet

RECORD_S = 5.0
"""How long the record is waited for, in seconds."""

STORAGE_S = 10.0
"""How long the storage of a model is waited for, in seconds."""

NOTHING_RECORDED = history.Recorded()


@dataclass(frozen=True)
class Occasion:
    """When a report is made (seconds since 1970), and of which commit the spec is."""

    at_s: float
    commit: str | None = None


@dataclass(frozen=True)
class Asking:
    """How the lanes are asked: with their questions, too, or not; within how many seconds (None: as long as it takes).

    `heard`: what has been heard of them, by address.
    """

    is_probing: bool = False
    within_s: float | None = None
    heard: dict[str, Verdict] = field(default_factory=dict)

    def at_most(self, seconds: float) -> float:
        """The time for what is done beside: no longer than the lanes are asked."""
        return seconds if self.within_s is None else min(seconds, self.within_s)


async def drift_report(fleet: "Fleet", observed: Observed, occasion: Occasion, asking: Asking) -> Report:
    """The report of what was observed. Asks the heads of the lanes; who says nothing in time is missing."""
    past = asyncio.create_task(_remembered(fleet, occasion.at_s, asking.at_most(RECORD_S)))
    storage_s = asking.at_most(STORAGE_S)
    _, (seen, mute), marks = await asyncio.gather(
        _ask(fleet, observed, asking),
        fleet.with_running_models(observed, storage_s),
        live_secrets(fleet.nodes, observed, fleet.desired.fleet, storage_s),
    )
    seen = with_live_secrets(seen, marks)
    status = await fleet.status(observed, now_s=occasion.at_s, past=past, health=asking.heard)
    known = (await past).hands_off
    report = report_of(fleet, seen, occasion, asking.heard, holds.shown(fleet, status, known), known, mute)
    return replace(report, missing=unheard(fleet, observed, asking))


async def _ask(fleet: "Fleet", observed: Observed, asking: Asking) -> None:
    try:
        async with asyncio.timeout(asking.within_s):
            await asked(fleet, observed, probe=asking.is_probing, heard=asking.heard.__setitem__)
    except TimeoutError:
        return


def unheard(fleet: "Fleet", observed: Observed, asking: Asking) -> tuple[str, ...]:
    """What is missing of the lanes that were to be asked."""
    lanes = (view.gang.address for view in views(fleet.desired, observed) if can_be_asked(view))
    return tuple(f"whether {gang} answers" for gang in lanes if gang not in asking.heard)


async def _remembered(fleet: "Fleet", now_s: float, within_s: float) -> history.Remembered:
    """What is recorded, where it answers: a report is not held up by its history."""
    try:
        async with asyncio.timeout(within_s):
            return await fleet.remembered(now_s)
    except TimeoutError:
        return history.Remembered()


def report_short(fleet: "Fleet", observed: Observed, occasion: Occasion, health: Mapping[str, Verdict]) -> Report:
    """The report of what was observed, and of what was heard of lanes, alone."""
    plan = fleet.plan(observed, allow_empty=True)
    lanes = tuple(lane_status(view, health.get(view.gang.address)) for view in views(fleet.desired, observed))
    status = FleetStatus(fleet.desired.fleet, lanes, unwanted(fleet.desired, observed), plan.unknown, plan.foreign)
    return report_of(fleet, observed, occasion, health, status)


def report_of(
    fleet: "Fleet",
    observed: Observed,
    occasion: Occasion,
    health: Mapping[str, Verdict],
    status: FleetStatus,
    known: history.Recorded = NOTHING_RECORDED,
    mute: tuple[Unknown, ...] = (),
) -> Report:
    """Compared, sifted by the rules of the spec, the worst first. `known`: what keeps `fleet apply` off; `mute`: nodes
    that did not tell of their models."""
    today = time.strftime("%Y-%m-%d", time.localtime(occasion.at_s))
    judge = Judge.of(fleet.desired, today, fleet.options().checks)
    found = (*findings(fleet.desired, observed, health, status, judge), *mute_storage(mute))
    sifted = sift(found, fleet.desired.ignores, today)
    left = true_remedies(sifted.findings, lambda: holds.withheld(fleet.plan(observed), known))
    clusters = tuple(ClusterDrawn(name, tuple(cluster.nodes)) for name, cluster in sorted(fleet.spec.clusters.items()))
    return Report(
        fleet=fleet.desired.fleet,
        at_s=occasion.at_s,
        commit=occasion.commit,
        spec=fleet.desired.spec_fingerprint,
        tool=TOOL,
        findings=worst_first(left),
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
