"""A store that forgets: for tests, ours and users'."""

from dataclasses import replace

from state.checks import Outcome, Snapshot, findings
from state.errors import MisuseError
from state.records import Entry, Revision, Run


class MemoryStore:
    """The `Store` protocol on plain Python containers."""

    def __init__(self) -> None:
        self._runs: dict[str, Run] = {}
        self._intents: dict[tuple[str, int], Entry] = {}
        self._outcomes: dict[tuple[str, int], Outcome] = {}
        self._revisions: dict[tuple[str, int, str], Revision] = {}

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
        self._active(run_id)
        sequence = len(self.entries(run_id)) + 1
        self._intents[run_id, sequence] = Entry(run_id, sequence, step_id, gang, node, op, target, operation, at)
        return sequence

    def outcome(self, run_id: str, sequence: int, result: str, detail: str, at: float) -> None:
        """See `Store.outcome`."""
        key = (run_id, sequence)
        if key not in self._intents or key in self._outcomes:
            raise MisuseError(f"entry {sequence} of run {run_id} has no intent, or an outcome already")
        self._outcomes[key] = Outcome(run_id, sequence, result, detail, at)

    def end_run(self, run_id: str, exit_code: int, at: float) -> None:
        """See `Store.end_run`."""
        self._runs[run_id] = replace(self._active(run_id), ended_at=at, exit_code=exit_code)

    def runs(self, limit: int) -> tuple[Run, ...]:
        """See `Store.runs`."""
        return tuple(reversed(self._runs.values()))[:limit]

    def entries(self, run_id: str) -> tuple[Entry, ...]:
        """See `Store.entries`."""
        return tuple(self._entry(key) for key in self._intents if key[0] == run_id)

    def open_entries(self) -> tuple[Entry, ...]:
        """See `Store.open_entries`."""
        return tuple(entry for key, entry in self._intents.items() if key not in self._outcomes)

    def confirm(self, revision: Revision) -> None:
        """See `Store.confirm`."""
        if revision.run_id not in self._runs:
            raise MisuseError(f"run {revision.run_id} was never begun")
        key = (revision.gang, revision.number, revision.run_id)
        self._revisions.pop(key, None)
        self._revisions[key] = revision

    def boots(self, gang: str, limit: int) -> tuple[float, ...]:
        """See `Store.boots`."""
        found = (revision.boot_s for revision in reversed(self._revisions.values()) if revision.gang == gang)
        return tuple(found)[:limit]

    def verify(self) -> tuple[str, ...]:
        """See `Store.verify`."""
        return findings(
            Snapshot(
                runs=tuple(self._runs.values()),
                intents=tuple(self._intents.values()),
                outcomes=tuple(self._outcomes.values()),
                revisions=tuple(self._revisions.values()),
            )
        )

    def close(self) -> None:
        """Nothing to let go of."""

    def _active(self, run_id: str) -> Run:
        run = self._runs.get(run_id)
        if run is None or run.ended_at is not None:
            raise MisuseError(f"run {run_id} was never begun, or has ended")
        return run

    def _entry(self, key: tuple[str, int]) -> Entry:
        intent, outcome = self._intents[key], self._outcomes.get(key)
        if outcome is None:
            return intent
        return replace(intent, ended_at=outcome.ended_at, result=outcome.result, detail=outcome.detail)
