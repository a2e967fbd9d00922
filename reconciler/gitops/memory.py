"""What the agent has in the recorded state: what it remembers, who suspended it, and which commit a person accepted.

Each change is read, made and written at once: `fleet gitops retry` may come while an apply is under way.
"""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

import state
from reconciler.core.canonical import canonical_json
from reconciler.core.decode import DecodeError, decoded
from reconciler.core.gitops.memory import SUSPENDED, Remembered, Suspension, remembered_of, suspension_of

T = TypeVar("T")

REMEMBERED = "gitops"
ACCEPTED = "gitops.accepted"
"""The names under which it is kept."""


@dataclass(frozen=True)
class Accepted:
    """A commit that a person lets the agent go on from, though it does not come after the last applied one.

    `before`: that one. When another is applied, the acceptance has served its time.
    """

    commit: str
    before: str | None
    by: str
    at_s: float


@dataclass(frozen=True)
class Memory:
    """What is recorded at a place. Every method raises `state.StateError`."""

    place: state.Location
    open_store: Callable[[state.Location], state.Store] = state.open_store

    def recalled(self) -> Remembered:
        """What is remembered; of nothing, nothing."""
        with self._store() as store:
            return _remembered(store)

    def update(self, change: Callable[[Remembered], Remembered]) -> Remembered:
        """Change what is remembered; what it is then."""
        with self._store() as store:
            before = _remembered(store)
            after = change(before)
            if after != before:
                store.remember(REMEMBERED, after.to_json())
            return after

    def suspended(self, now_s: float) -> Suspension | None:
        """Who keeps the agent off at `now_s`, if somebody does."""
        with self._store() as store:
            return _read(lambda: suspension_of(store.recall(SUSPENDED), now_s))

    def suspend(self, suspension: Suspension) -> None:
        """Keep the agent off, in place of an earlier suspension."""
        with self._store() as store:
            store.remember(SUSPENDED, canonical_json(suspension))

    def unsuspend(self, now_s: float) -> Suspension | None:
        """Let the agent go on; who kept it off until `now_s`, where that can be read."""
        with self._store() as store:
            text = store.recall(SUSPENDED)
            store.remember(SUSPENDED, None)
        try:
            return suspension_of(text, now_s)
        except DecodeError:
            return None

    def accepted(self) -> Accepted | None:
        """The commit that a person accepted last."""
        with self._store() as store:
            text = store.recall(ACCEPTED)
            return _read(lambda: None if text is None else decoded(Accepted, text))

    def accept(self, accepted: Accepted) -> None:
        """Let the agent go on from this commit."""
        with self._store() as store:
            store.remember(ACCEPTED, canonical_json(accepted))

    def retry(self) -> tuple[str, ...]:
        """As if nothing had failed; the placements that are out of quarantine by it."""
        with self._store() as store:
            store.remember(REMEMBERED, _remembered(store).again().to_json())
            gangs = tuple(sorted({item.gang for item in store.quarantined()}))
            for gang in gangs:
                store.lift(gang, None)
            return gangs

    @contextlib.contextmanager
    def _store(self) -> Iterator[state.Store]:
        store = self.open_store(self.place)
        try:
            yield store
        finally:
            store.close()


def _remembered(store: state.Store) -> Remembered:
    text = store.recall(REMEMBERED)
    return _read(lambda: remembered_of(text))


def _read(read: Callable[[], T]) -> T:
    try:
        return read()
    except DecodeError as error:
        raise state.StateError(f"what the agent remembers cannot be read: {error}", "`fleet state verify`") from None
