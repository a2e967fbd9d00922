"""The one door to the recorded state. Every implementation passes tests/unit/state/test_contract.py."""

from typing import Protocol

from state.checks import Snapshot
from state.records import Entry, Hold, Intent, Measure, Quarantine, Revision, Run

REPORTS = 200
"""So many drift reports are kept: a week of hourly ones, and a day."""


class Store(Protocol):
    """Runs, journal, revisions, claimed plans, holds, quarantine, how long things took, drift reports and memories.

    Each call is one transaction, on stable storage when it returns. Five are so only together with the next other call
    that writes: `outcome`, `confirm`, `lift`, `measure` and `add_report`. The end of this process undoes none; a power
    cut of the machine may undo the last ones, and then an effect is settled by looking, like one that was under way.
    Every call may raise `StateError`; breaking the rules written here raises its subclass `MisuseError` and records
    nothing.
    """

    def check_writable(self) -> None:
        """Prove that a run's worth of entries can be recorded. To be called before the first effect."""
        ...

    def begin_run(self, run: Run) -> None:
        """Record the start of `run`. Its id is new."""
        ...

    def intent(
        self, run_id: str, step_id: str, gang: str, node: str | None, op: str, target: str, operation: str, at: float
    ) -> int:
        """Record that an effect is about to happen; its sequence in the run. The run is begun and not ended."""
        ...

    def intents(self, run_id: str, intents: tuple[Intent, ...]) -> tuple[int, ...]:
        """As `intent`, of effects that begin together: all are recorded, or none. It costs about as much as one."""
        ...

    def outcome(self, run_id: str, sequence: int, result: str, detail: str, at: float) -> None:
        """Record what became of an intent. It has no outcome yet; its run may be an earlier one, ended or dead."""
        ...

    def end_run(self, run_id: str, exit_code: int, at: float) -> None:
        """Record the end of a run that is begun and not ended.

        A run with open entries should be left unended, for the next one to settle them: `verify` names it otherwise.
        """
        ...

    def runs(self, limit: int) -> tuple[Run, ...]:
        """The last `limit` runs in the order they were recorded, newest first."""
        ...

    def run(self, run_id: str) -> Run | None:
        """The run of that id, None when there is none."""
        ...

    def entries(self, run_id: str) -> tuple[Entry, ...]:
        """The journal of one run, in sequence; empty for an unknown run."""
        ...

    def open_entries(self) -> tuple[Entry, ...]:
        """Every intent without an outcome, of any run, oldest first."""
        ...

    def confirm(self, revision: Revision) -> None:
        """Record a proved revision of a known run. Again for the same gang, number and run: the last one counts."""
        ...

    def boots(self, gang: str, limit: int) -> tuple[float, ...]:
        """How long the last `limit` confirmed boots of `gang` took, in seconds, newest first."""
        ...

    def revisions(self, gang: str | None, limit: int) -> tuple[Revision, ...]:
        """The last `limit` confirmed revisions of `gang`, or of all gangs, newest first."""
        ...

    def claim_plan(self, saved_id: str, run_id: str, at: float) -> str | None:
        """Take a saved plan for a begun run: None when it is this run's now, else the run that has it since before."""
        ...

    def place_hold(self, hold: Hold) -> None:
        """Record a hold. Its id is new."""
        ...

    def release_hold(self, hold_id: str, at: float) -> bool:
        """End a hold at `at`; False when no hold of that id is active then."""
        ...

    def holds(self, now: float) -> tuple[Hold, ...]:
        """The holds that are active at `now`, oldest first."""
        ...

    def quarantine(self, failed: Quarantine) -> None:
        """Record a version of a gang that failed in a known run; the same version again replaces what was said."""
        ...

    def lift(self, gang: str, fingerprint: str | None) -> int:
        """Forget the quarantine of a version of `gang`, or of all its versions; how many were lifted."""
        ...

    def quarantined(self) -> tuple[Quarantine, ...]:
        """Every version in quarantine, the one that failed last at the end."""
        ...

    def measure(self, measures: tuple[Measure, ...]) -> None:
        """Record how long things took in a known run."""
        ...

    def measures(self, each: int) -> tuple[Measure, ...]:
        """The last `each` of every kind, image, model and class of node, newest first."""
        ...

    def add_report(self, at: float, text: str) -> None:
        """Keep a drift report, and forget the oldest ones beyond `REPORTS`."""
        ...

    def reports(self, limit: int) -> tuple[tuple[float, str], ...]:
        """When, and as what text, the last `limit` drift reports were added, newest first."""
        ...

    def remember(self, name: str, text: str | None) -> None:
        """Keep `text` under `name` in place of what was there; None forgets it."""
        ...

    def recall(self, name: str) -> str | None:
        """What is remembered under `name`, None when nothing is."""
        ...

    def snapshot(self) -> Snapshot:
        """Everything that is recorded, of one moment."""
        ...

    def restore(self, snapshot: Snapshot) -> None:
        """Record a whole snapshot, or nothing of it. Raises `StateError` when something is recorded already, or when
        `snapshot` breaks a rule that every store keeps.
        """
        ...

    def verify(self) -> tuple[str, ...]:
        """What is wrong with the records, one sentence each; empty when all is well. Changes nothing."""
        ...

    def close(self) -> None:
        """Let go of the storage. No other call afterwards."""
        ...
