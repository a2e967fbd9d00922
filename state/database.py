"""What the store needs of a database: transactions with the errors of `state.errors`, whatever is behind them."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

Values = Mapping[str, Any]
"""What the names in a statement stand for, or a row: by column."""


class Transaction(Protocol):
    """Executes the statements of `state.statements`."""

    def rows(self, statement: str, asked: Values) -> Sequence[Values]:
        """What a statement finds."""
        ...

    def change(self, statement: str, *given: Values) -> int:
        """Execute a statement for each of `given`; of one alone, how many rows it changed."""
        ...


class Database(Protocol):
    """One opened database whose tables are of this version. One writer at a time: transactions that write wait."""

    def reading(self) -> AbstractContextManager[Transaction]:
        """A transaction that sees one moment. What the database cannot do is raised as `StateError`."""
        ...

    def writing(self) -> AbstractContextManager[Transaction]:
        """A transaction that nobody else writes beside, on stable storage when it has ended without an exception.

        Raises `StateError`; `MisuseError` for what the tables refuse.
        """
        ...

    def noting(self) -> AbstractContextManager[Transaction]:
        """As `writing`, but a power cut may undo it until the next `writing` has ended. The end of this process not."""
        ...

    def check_writable(self) -> None:
        """Prove by a real write that there will be more. Raises `StateError`."""
        ...

    def damages(self) -> tuple[str, ...]:
        """What is broken inside the database itself, a sentence each."""
        ...

    def close(self) -> None:
        """Let go of it."""
        ...
