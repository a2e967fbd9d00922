"""A store that forgets: for tests, ours and users'."""

from collections import Counter
from dataclasses import replace

from state.checks import Outcome, Snapshot, findings, require_restorable
from state.errors import MisuseError
from state.protocol import REPORTS
from state.records import (
    Entry,
    Hold,
    Intent,
    Measure,
    Memory,
    PastReport,
    PlanClaim,
    Quarantine,
    Revision,
    Run,
    storable,
)


class MemoryStore:
    """The `Store` protocol on plain Python containers."""

    def __init__(self) -> None:
        self._runs: dict[str, Run] = {}
        self._intents: dict[tuple[str, int], Entry] = {}
        self._outcomes: dict[tuple[str, int], Outcome] = {}
        self._revisions: dict[tuple[str, int, str], Revision] = {}
        self._claims: dict[str, PlanClaim] = {}
        self._holds: dict[str, Hold] = {}
        self._quarantines: dict[tuple[str, str], Quarantine] = {}
        self._measures: list[Measure] = []
        self._reports: list[PastReport] = []
        self._memories: dict[str, str] = {}
        self._lengths: Counter[str] = Counter()

    def check_writable(self) -> None:
        """Always is."""

    def begin_run(self, run: Run) -> None:
        """See `Store.begin_run`."""
        if run.id in self._runs:
            raise MisuseError(f"run {run.id} was begun before")
        self._runs[run.id] = run

    def intent(
        self, run_id: str, step_id: str, gang: str, node: str | None, op: str, target: str, operation: str, at: float
    ) -> int:
        """See `Store.intent`."""
        return self.intents(run_id, (Intent(step_id, gang, node, op, target, operation, at),))[0]

    def intents(self, run_id: str, intents: tuple[Intent, ...]) -> tuple[int, ...]:
        """See `Store.intents`."""
        self._active(run_id)
        first = self._lengths[run_id] + 1
        self._lengths[run_id] += len(intents)
        for sequence, intent in enumerate(intents, start=first):
            self._intents[run_id, sequence] = intent.as_entry(run_id, sequence)
        return tuple(range(first, first + len(intents)))

    def outcome(self, run_id: str, sequence: int, result: str, detail: str, at: float) -> None:
        """See `Store.outcome`."""
        key = (run_id, sequence)
        if key not in self._intents or key in self._outcomes:
            raise MisuseError(f"entry {sequence} of run {run_id} has no intent, or an outcome already")
        self._outcomes[key] = Outcome(run_id, sequence, result, storable(detail), at)

    def end_run(self, run_id: str, exit_code: int, at: float) -> None:
        """See `Store.end_run`."""
        self._runs[run_id] = replace(self._active(run_id), ended_at=at, exit_code=exit_code)

    def runs(self, limit: int) -> tuple[Run, ...]:
        """See `Store.runs`."""
        return tuple(reversed(self._runs.values()))[:limit]

    def run(self, run_id: str) -> Run | None:
        """See `Store.run`."""
        return self._runs.get(run_id)

    def entries(self, run_id: str) -> tuple[Entry, ...]:
        """See `Store.entries`."""
        return tuple(self._entry(key) for key in self._intents if key[0] == run_id)

    def open_entries(self) -> tuple[Entry, ...]:
        """See `Store.open_entries`."""
        return tuple(entry for key, entry in self._intents.items() if key not in self._outcomes)

    def confirm(self, revision: Revision) -> None:
        """See `Store.confirm`."""
        self._known(revision.run_id)
        key = (revision.gang, revision.number, revision.run_id)
        self._revisions.pop(key, None)
        self._revisions[key] = revision

    def boots(self, gang: str, limit: int) -> tuple[float, ...]:
        """See `Store.boots`."""
        return tuple(revision.boot_s for revision in self.revisions(gang, limit))

    def revisions(self, gang: str | None, limit: int) -> tuple[Revision, ...]:
        """See `Store.revisions`."""
        found = (item for item in reversed(self._revisions.values()) if gang in {None, item.gang})
        return tuple(found)[:limit]

    def claim_plan(self, saved_id: str, run_id: str, at: float) -> str | None:
        """See `Store.claim_plan`."""
        self._known(run_id)
        owner = self._claims.setdefault(saved_id, PlanClaim(saved_id, run_id, at)).run_id
        return None if owner == run_id else owner

    def place_hold(self, hold: Hold) -> None:
        """See `Store.place_hold`."""
        if hold.id in self._holds:
            raise MisuseError(f"hold {hold.id} was placed before")
        self._holds[hold.id] = replace(hold, owner=storable(hold.owner), reason=storable(hold.reason))

    def release_hold(self, hold_id: str, at: float) -> bool:
        """See `Store.release_hold`."""
        hold = self._holds.get(hold_id)
        if hold is None or not hold.is_active(at):
            return False
        self._holds[hold_id] = replace(hold, released_at=at)
        return True

    def holds(self, now: float) -> tuple[Hold, ...]:
        """See `Store.holds`."""
        return tuple(hold for hold in self._holds.values() if hold.is_active(now))

    def quarantine(self, failed: Quarantine) -> None:
        """See `Store.quarantine`."""
        self._known(failed.run_id)
        key = (failed.gang, failed.fingerprint)
        self._quarantines.pop(key, None)
        self._quarantines[key] = replace(failed, cause=storable(failed.cause))

    def lift(self, gang: str, fingerprint: str | None) -> int:
        """See `Store.lift`."""
        keys = [key for key in self._quarantines if key[0] == gang and fingerprint in {None, key[1]}]
        for key in keys:
            del self._quarantines[key]
        return len(keys)

    def quarantined(self) -> tuple[Quarantine, ...]:
        """See `Store.quarantined`."""
        return tuple(self._quarantines.values())

    def measure(self, measures: tuple[Measure, ...]) -> None:
        """See `Store.measure`."""
        for item in measures:
            self._known(item.run_id)
        self._measures += measures

    def measures(self, each: int) -> tuple[Measure, ...]:
        """See `Store.measures`."""
        seen: Counter[tuple[str, str, str, str]] = Counter()
        found = []
        for item in reversed(self._measures):
            subject = item.kind, item.image, item.model, item.node_class
            seen[subject] += 1
            if seen[subject] <= each:
                found.append(item)
        return tuple(found)

    def add_report(self, at: float, text: str) -> None:
        """See `Store.add_report`."""
        self._reports = [*self._reports, PastReport(at, storable(text))][-REPORTS:]

    def reports(self, limit: int) -> tuple[tuple[float, str], ...]:
        """See `Store.reports`."""
        return tuple((item.at, item.text) for item in reversed(self._reports))[:limit]

    def remember(self, name: str, text: str | None) -> None:
        """See `Store.remember`."""
        self._memories.pop(name, None)
        if text is not None:
            self._memories[name] = storable(text)

    def recall(self, name: str) -> str | None:
        """See `Store.recall`."""
        return self._memories.get(name)

    def snapshot(self) -> Snapshot:
        """See `Store.snapshot`."""
        return Snapshot(
            runs=tuple(self._runs.values()),
            intents=tuple(self._intents.values()),
            outcomes=tuple(self._outcomes[key] for key in self._intents if key in self._outcomes),
            revisions=tuple(self._revisions.values()),
            claims=tuple(self._claims.values()),
            holds=tuple(self._holds.values()),
            quarantines=tuple(self._quarantines.values()),
            measures=tuple(self._measures),
            reports=tuple(self._reports),
            memories=tuple(Memory(name, text) for name, text in self._memories.items()),
        )

    def restore(self, snapshot: Snapshot) -> None:
        """See `Store.restore`."""
        require_restorable(snapshot, present=not self.snapshot().is_empty)
        self._runs = {item.id: item for item in snapshot.runs}
        self._intents = {(item.run_id, item.sequence): item for item in snapshot.intents}
        self._outcomes = {(item.run_id, item.sequence): item for item in snapshot.outcomes}
        self._revisions = {(item.gang, item.number, item.run_id): item for item in snapshot.revisions}
        self._claims = {item.saved_id: item for item in snapshot.claims}
        self._holds = {item.id: item for item in snapshot.holds}
        self._quarantines = {(item.gang, item.fingerprint): item for item in snapshot.quarantines}
        self._measures = [*snapshot.measures]
        self._reports = [*snapshot.reports]
        self._memories = {item.name: item.text for item in snapshot.memories}
        self._lengths = Counter(item.run_id for item in snapshot.intents)

    def verify(self) -> tuple[str, ...]:
        """See `Store.verify`."""
        return findings(self.snapshot())

    def close(self) -> None:
        """Nothing to let go of."""

    def _active(self, run_id: str) -> Run:
        run = self._runs.get(run_id)
        if run is None or run.ended_at is not None:
            raise MisuseError(f"run {run_id} was never begun, or has ended")
        return run

    def _known(self, run_id: str) -> None:
        if run_id not in self._runs:
            raise MisuseError(f"run {run_id} was never begun")

    def _entry(self, key: tuple[str, int]) -> Entry:
        intent, outcome = self._intents[key], self._outcomes.get(key)
        if outcome is None:
            return intent
        return replace(intent, ended_at=outcome.ended_at, result=outcome.result, detail=outcome.detail)
