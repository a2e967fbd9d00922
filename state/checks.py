"""The rules every snapshot of the state has to keep. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from state.records import Entry, Revision, Run


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


def findings(snapshot: Snapshot) -> tuple[str, ...]:
    """Each broken rule as a sentence, in a stable order."""
    rules = (_half_ended_runs, _unknown_runs, _sequence_gaps, _outcomes_without_intents, _ended_with_open_entries)
    return tuple(sorted(sentence for rule in rules for sentence in rule(snapshot)))


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
