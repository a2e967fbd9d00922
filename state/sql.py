"""The store on a database."""

from dataclasses import fields, replace
from typing import Any, TypeVar

from state import statements as sql
from state.checks import Outcome, Snapshot, findings, require_restorable
from state.database import Database, Transaction
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

T = TypeVar("T")


class SqlStore:
    """The `Store` protocol on any `Database`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def check_writable(self) -> None:
        """See `Store.check_writable`."""
        self._database.check_writable()

    def begin_run(self, run: Run) -> None:
        """See `Store.begin_run`."""
        with self._database.writing() as transaction:
            transaction.change(sql.INSERT["runs"], vars(run))

    def intent(
        self, run_id: str, step_id: str, gang: str, node: str | None, op: str, target: str, operation: str, at: float
    ) -> int:
        """See `Store.intent`."""
        return self.intents(run_id, (Intent(step_id, gang, node, op, target, operation, at),))[0]

    def intents(self, run_id: str, intents: tuple[Intent, ...]) -> tuple[int, ...]:
        """See `Store.intents`."""
        with self._database.writing() as transaction:
            found = transaction.rows(sql.NEXT_SEQUENCE, {"of_run": run_id})
            if not found:
                raise _not_running(run_id)
            first: int = found[0]["sequence"]
            sequences = range(first, first + len(intents))
            entries = [vars(item.as_entry(run_id, number)) for item, number in zip(intents, sequences, strict=True)]
            if entries:
                transaction.change(sql.INSERT["intents"], *entries)
        return tuple(sequences)

    def outcome(self, run_id: str, sequence: int, result: str, detail: str, at: float) -> None:
        """See `Store.outcome`."""
        outcome = Outcome(run_id, sequence, result, storable(detail), at)
        try:
            with self._database.noting() as transaction:
                transaction.change(sql.INSERT["outcomes"], vars(outcome))
        except MisuseError as error:
            what = f"entry {sequence} of run {run_id} is settled already: another run took this one for dead"
            raise MisuseError(what, "`fleet history` shows both.") from error

    def end_run(self, run_id: str, exit_code: int, at: float) -> None:
        """See `Store.end_run`."""
        with self._database.writing() as transaction:
            values = {"of_run": run_id, "at_time": at, "with_code": exit_code}
            if transaction.change(sql.END_RUN, values) == 0:
                raise _not_running(run_id)

    def runs(self, limit: int) -> tuple[Run, ...]:
        """See `Store.runs`."""
        return self._read(Run, sql.LAST_RUNS, limit=limit)

    def run(self, run_id: str) -> Run | None:
        """See `Store.run`."""
        return next(iter(self._read(Run, sql.ONE_RUN, of_run=run_id)), None)

    def entries(self, run_id: str) -> tuple[Entry, ...]:
        """See `Store.entries`."""
        return self._read(Entry, sql.ENTRIES, of_run=run_id)

    def open_entries(self) -> tuple[Entry, ...]:
        """See `Store.open_entries`."""
        return self._read(Entry, sql.OPEN_ENTRIES)

    def confirm(self, revision: Revision) -> None:
        """See `Store.confirm`."""
        same = {"of_gang": revision.gang, "of_number": revision.number, "of_run": revision.run_id}
        with self._database.noting() as transaction:
            transaction.change(sql.FORGET_REVISION, same)
            transaction.change(sql.INSERT["revisions"], vars(revision))

    def boots(self, gang: str, limit: int) -> tuple[float, ...]:
        """See `Store.boots`."""
        return tuple(revision.boot_s for revision in self.revisions(gang, limit))

    def revisions(self, gang: str | None, limit: int) -> tuple[Revision, ...]:
        """See `Store.revisions`."""
        if gang is None:
            return self._read(Revision, sql.LAST_REVISIONS, limit=limit)
        return self._read(Revision, sql.LAST_REVISIONS_OF, limit=limit, of_gang=gang)

    def claim_plan(self, saved_id: str, run_id: str, at: float) -> str | None:
        """See `Store.claim_plan`."""
        with self._database.writing() as transaction:
            claimed = transaction.rows(sql.CLAIMED_BY, {"of_plan": saved_id})
            owner: str | None = claimed[0]["run_id"] if claimed else None
            if owner is None:
                transaction.change(sql.INSERT["claims"], vars(PlanClaim(saved_id, run_id, at)))
            elif not transaction.rows(sql.ONE_RUN, {"of_run": run_id}):
                raise MisuseError(f"run {run_id} was never begun")
        return None if owner == run_id else owner

    def place_hold(self, hold: Hold) -> None:
        """See `Store.place_hold`."""
        kept = replace(hold, owner=storable(hold.owner), reason=storable(hold.reason))
        with self._database.writing() as transaction:
            transaction.change(sql.INSERT["holds"], vars(kept))

    def release_hold(self, hold_id: str, at: float) -> bool:
        """See `Store.release_hold`."""
        with self._database.writing() as transaction:
            return transaction.change(sql.RELEASE, {"of_hold": hold_id, "now": at}) > 0

    def holds(self, now: float) -> tuple[Hold, ...]:
        """See `Store.holds`."""
        return self._read(Hold, sql.ACTIVE_HOLDS, now=now)

    def quarantine(self, failed: Quarantine) -> None:
        """See `Store.quarantine`."""
        with self._database.writing() as transaction:
            transaction.change(sql.LIFT, {"of_gang": failed.gang, "of_fingerprint": failed.fingerprint})
            transaction.change(sql.INSERT["quarantines"], vars(replace(failed, cause=storable(failed.cause))))

    def lift(self, gang: str, fingerprint: str | None) -> int:
        """See `Store.lift`."""
        with self._database.noting() as transaction:
            if fingerprint is None:
                return transaction.change(sql.LIFT_ALL, {"of_gang": gang})
            return transaction.change(sql.LIFT, {"of_gang": gang, "of_fingerprint": fingerprint})

    def quarantined(self) -> tuple[Quarantine, ...]:
        """See `Store.quarantined`."""
        return self._read(Quarantine, sql.ALL["quarantines"])

    def measure(self, measures: tuple[Measure, ...]) -> None:
        """See `Store.measure`."""
        if measures:
            with self._database.noting() as transaction:
                transaction.change(sql.INSERT["measures"], *(vars(item) for item in measures))

    def measures(self, each: int) -> tuple[Measure, ...]:
        """See `Store.measures`."""
        return self._read(Measure, sql.LAST_MEASURES, each=each)

    def add_report(self, at: float, text: str) -> None:
        """See `Store.add_report`."""
        with self._database.noting() as transaction:
            transaction.change(sql.INSERT["reports"], vars(PastReport(at, storable(text))))
            transaction.change(sql.FORGET_REPORTS, {"limit": REPORTS})

    def reports(self, limit: int) -> tuple[tuple[float, str], ...]:
        """See `Store.reports`."""
        return tuple((item.at, item.text) for item in self._read(PastReport, sql.LAST_REPORTS, limit=limit))

    def remember(self, name: str, text: str | None) -> None:
        """See `Store.remember`."""
        with self._database.writing() as transaction:
            transaction.change(sql.FORGET_MEMORY, {"of_name": name})
            if text is not None:
                transaction.change(sql.INSERT["memories"], vars(Memory(name, storable(text))))

    def recall(self, name: str) -> str | None:
        """See `Store.recall`."""
        return next((item.text for item in self._read(Memory, sql.ONE_MEMORY, of_name=name)), None)

    def snapshot(self) -> Snapshot:
        """See `Store.snapshot`."""
        with self._database.reading() as transaction:
            found: dict[str, Any] = {
                name: _records(transaction, sql.KINDS[name], query) for name, query in sql.ALL.items()
            }
        return Snapshot(**found)

    def restore(self, snapshot: Snapshot) -> None:
        """See `Store.restore`."""
        with self._database.writing() as transaction:
            counts = [transaction.rows(count, {})[0]["rows"] for count in sql.COUNT.values()]
            require_restorable(snapshot, present=any(counts))
            for field in fields(snapshot):
                if rows := [vars(item) for item in getattr(snapshot, field.name)]:
                    transaction.change(sql.INSERT[field.name], *rows)

    def verify(self) -> tuple[str, ...]:
        """See `Store.verify`."""
        return self._database.damages() or findings(self.snapshot())

    def close(self) -> None:
        """See `Store.close`."""
        self._database.close()

    def _read(self, kind: type[T], query: str, **asked: object) -> tuple[T, ...]:
        with self._database.reading() as transaction:
            return _records(transaction, kind, query, **asked)


def _records(transaction: Transaction, kind: type[T], query: str, **asked: object) -> tuple[T, ...]:
    return tuple(kind(**row) for row in transaction.rows(query, asked))


def _not_running(run_id: str) -> MisuseError:
    return MisuseError(f"run {run_id} was never begun, or has ended")
