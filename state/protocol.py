"""The one door to the recorded state. Every implementation passes tests/unit/state/test_contract.py."""

from typing import Protocol

from state.records import Entry, Revision, Run


class Store(Protocol):
    """Runs, journal and revisions.

    Each call is one transaction, on stable storage when it returns. Every call may raise `StateError`; breaking the
    rules written here raises its subclass `MisuseError` and records nothing.
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

    def verify(self) -> tuple[str, ...]:
        """What is wrong with the records, one sentence each; empty when all is well. Changes nothing."""
        ...

    def close(self) -> None:
        """Let go of the storage. No other call afterwards."""
        ...
