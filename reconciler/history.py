"""What the recorded state says to people: what was done, how long boots took, why one failed. No plan depends on it."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

import specs
import state
from reconciler.core.decode import DecodeError
from reconciler.core.durations import Known, known
from reconciler.core.exits import Exit
from reconciler.core.gitops.memory import SUSPENDED, Suspension, suspension_of
from reconciler.core.machine import BAD, GOOD, Status
from reconciler.core.plan import Op

VARIABLE = "FLEET_STATE"
"""Names the place of the state, before the spec does."""

BOOTS = 5
"""So many of the last boots speak for the next one."""

RUNS_LOOKED_AT = 10
"""How far back it is looked for what became of a lane."""


RUNS_SEARCHED = 1000
"""So many of the last runs are searched for those of one placement."""

UNTOUCHED = frozenset({Status.NOOP, Status.SKIPPED, Status.STALE})
"""Results of steps that changed nothing."""

ENDS = {
    Exit.OK: "done",
    Exit.ERROR: "error",
    Exit.REFUSED: "refused",
    Exit.UNREACHABLE: "nodes unreachable",
    Exit.LEASE_HELD: "lease held",
    6: "rolled back",
    Exit.NEEDS_A_PERSON: "needs a person",
    Exit.INTERRUPTED: "interrupted",
}
"""How a run ended, in a word, by its exit code."""

UNFINISHED = "unfinished"
"""A run without an end: it is going on, or it died."""


@dataclass(frozen=True)
class PastRun:
    """One run as a line of history. `touched`: the placements it changed, or tried to. `open`: effects not settled.

    `revisions`: what it proved, placement and number. Times are seconds since the epoch (UTC).
    """

    id: str
    started_at: float
    ended_at: float | None
    who: str
    command: str
    commit: str | None
    plan_id: str
    exit_code: int | None
    outcome: str
    touched: tuple[str, ...]
    open: int
    revisions: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True)
class Recorded:
    """What keeps hands off a fleet. `suspended`: what keeps the agent of `fleet gitops` off."""

    holds: tuple[state.Hold, ...] = ()
    quarantined: tuple[state.Quarantine, ...] = ()
    suspended: Suspension | None = None


@dataclass(frozen=True)
class Remembered:
    """What of the past belongs to a status: why the newest apply of a gang failed, by gang; how long things took.

    Empty where nothing is recorded, or with `error` where the record cannot be read.
    """

    failures: Mapping[str, str] = field(default_factory=dict)
    took: tuple[state.Measure, ...] = ()
    hands_off: Recorded = Recorded()
    error: state.StateError | None = None


def location(spec: specs.Spec) -> state.Location:
    """Where the state of this fleet is: as the variable `FLEET_STATE` says, or the spec, or else beside it.

    Raises `state.StateError` for a URL that leads to no PostgreSQL database.
    """
    return state.locate(os.environ.get(VARIABLE) or spec.state, spec.root)


def past_runs(place: state.Location, limit: int, placement: str | None = None) -> tuple[PastRun, ...]:
    """The last `limit` runs, newest first; only those that touched a placement, which is named by its address or lane.

    Raises `state.StateError`.
    """
    with reading(place) as store:
        if store is None:
            return ()
        runs = store.runs(RUNS_SEARCHED if placement else limit)
        proved = store.revisions(None, RUNS_SEARCHED)
        found = (_past(run, store.entries(run.id), proved) for run in runs)
        return tuple(run for run in found if placement is None or _concerns(run, placement))[:limit]


def _past(run: state.Run, entries: tuple[state.Entry, ...], proved: tuple[state.Revision, ...]) -> PastRun:
    touched = dict.fromkeys(entry.gang for entry in entries if entry.result not in UNTOUCHED)
    return PastRun(
        id=run.id,
        started_at=run.started_at,
        ended_at=run.ended_at,
        who=f"{run.user}@{run.host}",
        command=run.command,
        commit=run.commit,
        plan_id=run.plan_id,
        exit_code=run.exit_code,
        outcome=UNFINISHED if run.exit_code is None else ENDS.get(run.exit_code, f"exit {run.exit_code}"),
        touched=tuple(touched),
        open=sum(entry.is_open for entry in entries),
        revisions=tuple((item.gang, item.number) for item in reversed(proved) if item.run_id == run.id),
    )


def _concerns(run: PastRun, placement: str) -> bool:
    return any(placement in {gang, gang.rpartition("/")[2]} for gang in run.touched)


def boots(place: state.Location, gang: str) -> tuple[float, ...]:
    """How long the last boots of the gang took, in seconds, newest first. Raises `state.StateError`."""
    with reading(place) as store:
        return () if store is None else store.boots(gang, BOOTS)


def measures(place: state.Location) -> tuple[state.Measure, ...]:
    """How long things took, the last times of each, newest first. Raises `state.StateError`."""
    with reading(place) as store:
        return () if store is None else store.measures(BOOTS)


def known_durations(place: state.Location, placement: str | None = None) -> tuple[Known, ...]:
    """How long things took, of all placements or of one, which is named by its address or lane. Raises `StateError`."""
    return tuple(
        item
        for item in known(measures(place))
        if placement is None or any(placement in {gang, gang.rpartition("/")[2]} for gang in item.gangs)
    )


def recorded(place: state.Location, now: float) -> Recorded:
    """The holds that are active at `now` (seconds since the epoch), and the quarantine. Raises `state.StateError`."""
    with reading(place) as store:
        return Recorded() if store is None else _recorded(store, now)


def remembered(place: state.Location, now: float) -> Remembered:
    """What a status at `now` (seconds since the epoch) tells of earlier times, read in one go."""
    try:
        with reading(place) as store:
            if store is None:
                return Remembered()
            return Remembered(_failures(store), store.measures(BOOTS), _recorded(store, now))
    except state.StateError as error:
        return Remembered(error=error)


def _recorded(store: state.Store, now: float) -> Recorded:
    return Recorded(store.holds(now), store.quarantined(), suspension(store, now))


def suspension(store: state.Store, now: float) -> Suspension | None:
    """Who keeps the agent off at `now` (seconds since the epoch), if somebody does. Raises `state.StateError`."""
    try:
        return suspension_of(store.recall(SUSPENDED), now)
    except DecodeError as error:
        raise state.StateError(f"the suspension cannot be read: {error}", "`fleet unsuspend` takes it away") from None


@contextmanager
def reading(place: state.Location) -> Iterator[state.Store | None]:
    """What is recorded, for reading only, while the context lasts; None when nothing is. Raises `StateError`."""
    store = state.read_store(place)
    try:
        yield store
    finally:
        if store is not None:
            store.close()


def _failures(store: state.Store) -> dict[str, str]:
    """By gang: what went wrong in the newest run that booted or proved it, if something did."""
    found: dict[str, str | None] = {}
    for run in store.runs(RUNS_LOOKED_AT):
        for entry in store.entries(run.id):
            if entry.gang in found or entry.op not in {Op.READY, Op.START, Op.VERIFY}:
                continue
            if entry.result in BAD:
                found[entry.gang] = entry.detail
            elif entry.op == Op.VERIFY and entry.result in GOOD:
                found[entry.gang] = None
    return {gang: why for gang, why in found.items() if why is not None}


def boot_spans(store: state.Store, run_id: str) -> dict[str, tuple[float, float]]:
    """For each gang of a run: when its first rank was started and when its gate passed (epoch seconds)."""
    began: dict[str, float] = {}
    spans: dict[str, tuple[float, float]] = {}
    for entry in store.entries(run_id):
        if entry.op == Op.START:
            began.setdefault(entry.gang, entry.intent_at)
        if entry.op == Op.VERIFY and entry.ended_at is not None and entry.gang in began:
            spans[entry.gang] = (began[entry.gang], entry.ended_at)
    return spans
