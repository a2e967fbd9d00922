"""Holds and quarantine as they are recorded: placed, released, and laid over a plan.

What is recorded changes no plan; it keeps parts of one from being carried out (`core/withhold.py`).
"""

import time
import uuid
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime

import state
from reconciler import history, person
from reconciler.core.gitops.memory import Suspension
from reconciler.core.plan import Plan
from reconciler.core.stale import Stale
from reconciler.core.standins import with_put_aside
from reconciler.core.status import FleetStatus
from reconciler.core.withhold import Failed, Held, HoldKind, withhold
from reconciler.fleet import Fleet
from reconciler.history import Recorded


def recorded(fleet: Fleet, now: float) -> Recorded:
    """The holds that are active at `now` (seconds since the epoch), and the quarantine. Raises `state.StateError`."""
    return history.recorded(fleet.folder, now)


def withheld(plan: Plan, known: Recorded, *, retry: bool = False, stale: Iterable[Stale] = ()) -> Plan:
    """The plan with what of it is withheld. With `retry`, what failed before is tried again."""
    return withhold(plan, map(held, known.holds), map(_failed, known.quarantined), retry=retry, stale=stale)


def shown(fleet: Fleet, status: FleetStatus, known: Recorded) -> FleetStatus:
    """The status with the holds, and with the quarantine of what the spec asks for."""
    wanted = {(gang.address, gang.fingerprint) for gang in fleet.desired.gangs}
    failed = (item for item in known.quarantined if (item.gang, item.fingerprint) in wanted)
    told = suspended(known.suspended) if known.suspended else ""
    laid = replace(status, holds=tuple(map(held, known.holds)), suspended=told)
    return with_put_aside(laid, map(_failed, failed))


def place(fleet: Fleet, kind: HoldKind, name: str, reason: str, seconds: float | None) -> state.Hold:
    """Hold something from now on, for `seconds` or (None) for good. Raises `state.StateError`.

    One's own earlier hold on the same thing is replaced.
    """
    now = time.time()
    until = None if seconds is None else now + seconds
    hold = state.Hold(uuid.uuid4().hex[:8], kind, name, person.name(), reason, now, until)
    store = fleet.open_state()
    try:
        earlier = [item for item in store.holds(now) if (item.kind, item.name, item.owner) == (kind, name, hold.owner)]
        store.place_hold(hold)
        for item in earlier:
            store.release_hold(item.id, now)
    finally:
        store.close()
    return hold


def release(fleet: Fleet, hold: state.Hold) -> bool:
    """End a hold; False when somebody has ended it already, or it has lapsed. Raises `state.StateError`."""
    store = fleet.open_state()
    try:
        return store.release_hold(hold.id, time.time())
    finally:
        store.close()


def matching(known: Recorded, what: str, kind: HoldKind | None) -> tuple[state.Hold, ...]:
    """The holds with this id, or on what has this name."""
    return tuple(item for item in known.holds if what in {item.id, item.name} and kind in {None, item.kind})


def kinds_of(fleet: Fleet, name: str) -> tuple[HoldKind, ...]:
    """What in the spec has this name."""
    named: dict[HoldKind, Iterable[str]] = names(fleet)
    return tuple(kind for kind, known in named.items() if name in known)


def names(fleet: Fleet) -> dict[HoldKind, Iterable[str]]:
    """Everything that can be held, by kind."""
    return {"lane": fleet.spec.lanes, "cluster": fleet.spec.clusters, "node": fleet.spec.nodes}


def held(hold: state.Hold) -> Held:
    """A hold as the core knows it, and as text for people."""
    until = "" if hold.expires_at is None else utc(hold.expires_at)
    return Held(hold.id, hold.kind, hold.name, hold.owner, hold.reason, until)


def suspended(told: Suspension) -> str:
    """Who keeps the agent off, until when and why, as text for people."""
    until = "until it is ended" if told.until_s is None else f"until {utc(told.until_s)}"
    return f"suspended by {told.by} since {utc(told.since_s)}, {until}: {told.reason}"


def utc(at: float) -> str:
    """A moment as people write it: "2026-11-30 18:05 UTC"."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M UTC")


def _failed(item: state.Quarantine) -> Failed:
    return Failed(item.gang, item.fingerprint, item.cause, item.run_id, utc(item.at))
