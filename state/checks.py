"""The rules every snapshot of the state has to keep. Pure."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import groupby

from state.errors import StateError
from state.records import Entry, Hold, Measure, Memory, PastReport, PlanClaim, Quarantine, Revision, Run


@dataclass(frozen=True)
class Outcome:
    """What became of an intent, as it is stored: apart from it, so that the journal is only ever added to."""

    run_id: str
    sequence: int
    result: str
    detail: str
    ended_at: float


@dataclass(frozen=True)
class Snapshot:
    """Everything recorded at one moment. `intents` are entries without their outcomes."""

    runs: tuple[Run, ...] = ()
    intents: tuple[Entry, ...] = ()
    outcomes: tuple[Outcome, ...] = ()
    revisions: tuple[Revision, ...] = ()
    claims: tuple[PlanClaim, ...] = ()
    holds: tuple[Hold, ...] = ()
    quarantines: tuple[Quarantine, ...] = ()
    measures: tuple[Measure, ...] = ()
    reports: tuple[PastReport, ...] = ()
    memories: tuple[Memory, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether nothing is recorded."""
        return self == Snapshot()


Rule = Callable[[Snapshot], Iterator[str]]


def findings(snapshot: Snapshot) -> tuple[str, ...]:
    """Each broken rule as a sentence, in a stable order."""
    return _told(snapshot, (*SHAPE, _ended_with_open_entries))


def require_restorable(snapshot: Snapshot, present: bool) -> None:
    """Raise `StateError` when `snapshot` cannot be taken over, or something is `present` where it is to go."""
    if present:
        raise StateError(
            "there is something in the state already: what was exported goes into an empty one only",
            "`fleet state where` says where it is: move it aside, or name another place with FLEET_STATE.",
        )
    if broken := _told(snapshot, SHAPE):
        raise StateError(f"what is to be imported is not sound: {'; '.join(broken[:3])}")


def _told(snapshot: Snapshot, rules: tuple[Rule, ...]) -> tuple[str, ...]:
    return tuple(sorted(sentence for rule in rules for sentence in rule(snapshot)))


def _duplicates(snapshot: Snapshot) -> Iterator[str]:
    keys: dict[str, list[object]] = {
        "run": [run.id for run in snapshot.runs],
        "entry": [(item.run_id, item.sequence) for item in snapshot.intents],
        "outcome": [(item.run_id, item.sequence) for item in snapshot.outcomes],
        "revision": [(item.gang, item.number, item.run_id) for item in snapshot.revisions],
        "claimed plan": [item.saved_id for item in snapshot.claims],
        "hold": [item.id for item in snapshot.holds],
        "quarantine": [(item.gang, item.fingerprint) for item in snapshot.quarantines],
        "memory": [item.name for item in snapshot.memories],
    }
    for kind, found in keys.items():
        for key in sorted(str(key) for key, count in Counter(found).items() if count > 1):
            yield f"{kind} {key} is recorded more than once"


def _half_ended_runs(snapshot: Snapshot) -> Iterator[str]:
    for run in snapshot.runs:
        if (run.ended_at is None) != (run.exit_code is None):
            yield f"run {run.id} has only one of end time and exit code"


def _unknown_runs(snapshot: Snapshot) -> Iterator[str]:
    known = {run.id for run in snapshot.runs}
    for name in sorted({intent.run_id for intent in snapshot.intents} - known):
        yield f"run {name} has journal entries but no start"
    for revision in snapshot.revisions:
        if revision.run_id not in known:
            yield f"revision {revision.number} of {revision.gang} was confirmed by run {revision.run_id}, never started"
    for claim in snapshot.claims:
        if claim.run_id not in known:
            yield f"saved plan {claim.saved_id} was claimed by run {claim.run_id}, never started"
    for item in snapshot.quarantines:
        if item.run_id not in known:
            yield f"{item.gang} was put in quarantine by run {item.run_id}, never started"
    for measure in snapshot.measures:
        if measure.run_id not in known:
            yield f"a {measure.kind} of {measure.gang} was measured by run {measure.run_id}, never started"


def _sequence_gaps(snapshot: Snapshot) -> Iterator[str]:
    keys = sorted((intent.run_id, intent.sequence) for intent in snapshot.intents)
    for run_id, group in groupby(keys, key=lambda key: key[0]):
        for expected, (_, sequence) in enumerate(group, start=1):
            if sequence != expected:
                yield f"the journal of run {run_id} has entry {sequence} where entry {expected} belongs"
                break


def _outcomes_without_intents(snapshot: Snapshot) -> Iterator[str]:
    for run_id, sequence in sorted(_settled(snapshot) - {(item.run_id, item.sequence) for item in snapshot.intents}):
        yield f"entry {sequence} of run {run_id} has an outcome without an intent"


def _ended_with_open_entries(snapshot: Snapshot) -> Iterator[str]:
    ended = {run.id for run in snapshot.runs if run.ended_at is not None}
    settled = _settled(snapshot)
    for intent in snapshot.intents:
        if intent.run_id in ended and (intent.run_id, intent.sequence) not in settled:
            yield f"run {intent.run_id} ended while its entry {intent.sequence} ({intent.step_id}) was open"


def _settled(snapshot: Snapshot) -> set[tuple[str, int]]:
    return {(item.run_id, item.sequence) for item in snapshot.outcomes}


SHAPE: tuple[Rule, ...] = (_duplicates, _half_ended_runs, _unknown_runs, _sequence_gaps, _outcomes_without_intents)
"""What no store holds, unless it was written by another hand: a snapshot that breaks one of these is not restored."""
