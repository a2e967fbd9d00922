"""Every change of a gang's life, killed at every step: the next apply ends where the spec says. Exhaustive, not random.

Killed before and after every effect, and before every write of the journal. What has to be true in the end is
said by `reconciler.testing.simulation`: settled, whole, nothing twice, nothing left that nobody owns.
"""

import asyncio
import itertools
from collections.abc import Callable
from functools import partial
from typing import Any, cast

import pytest

from reconciler.core.desired import Desired
from reconciler.core.plan import Plan
from reconciler.nodes import protocols
from reconciler.testing import SimulatedFleet
from reconciler.testing.simulation import Ending, Trouble, play, story, watched
from state import MemoryStore
from tests.simulate.controller import FleetController
from tests.simulate.lifecycles import LIFECYCLES, lifecycle

READS = frozenset(
    {"check_writable", "runs", "run", "entries", "open_entries", "boots", "verify", "holds", "quarantined"}
    | {"revisions", "snapshot", "close"}
)
"""What a store does without writing. Everything else is a write, also what does not exist yet."""


class MortalStore:
    """A store whose controller dies right before a write. `writes`: how many there were."""

    def __init__(self, store: MemoryStore, dies_at: int | None, die: Callable[[], None]) -> None:
        self.writes = 0
        self._store = store
        self._dies_at = dies_at
        self._die = die

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._store, name)
        return found if name in READS or not callable(found) else self._mortal(found)

    def _mortal(self, write: Callable[..., Any]) -> Callable[..., Any]:
        def written(*args: object, **named: object) -> Any:
            self.writes += 1
            if self.writes == self._dies_at:
                self._die()
            return write(*args, **named)

        return written


class Mortal(FleetController):
    """Dies at a write of its first apply; `writes` says how many that has."""

    def __init__(self, dies_at: int | None = None) -> None:
        super().__init__()
        self.dies_at = dies_at
        self.writes: list[int] = []

    async def apply(
        self, nodes: protocols.Fleet, wants: Desired, on_plan: Callable[[Plan], None], stop: asyncio.Event
    ) -> Ending:
        assert isinstance(nodes, SimulatedFleet)
        plain, mortal = self.store, MortalStore(self.store, self.dies_at, nodes.kill_controller)
        self.store = cast("MemoryStore", mortal)
        try:
            return await super().apply(nodes, wants, on_plan, stop)
        finally:
            self.writes.append(mortal.writes)
            self.store, self.dies_at = plain, None


@pytest.mark.parametrize("name", LIFECYCLES)
def test_killed_before_or_after_every_effect_the_next_apply_converges(name: str) -> None:
    for number in itertools.count(1):
        kills = [Trouble("kill", number, changes_only=True, after=late) for late in (False, True)]
        played = [watched(lifecycle(name, kill, forgets=kill.after), FleetController) for kill in kills]
        assert [] == [story(item.failed) for item in played if item.failed]
        if not played[0].struck:
            break
    assert number > 2


@pytest.mark.parametrize("name", LIFECYCLES)
def test_killed_before_every_write_of_the_journal_the_next_apply_converges(name: str) -> None:
    clean = Mortal()
    assert play(lifecycle(name), lambda: clean) is None
    assert clean.writes[0] > 4
    for dies_at in range(1, clean.writes[0] + 1):
        failed = play(lifecycle(name), partial(Mortal, dies_at))
        assert failed is None, f"killed before write {dies_at}\n{story(failed)}"
