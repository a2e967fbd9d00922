"""Steps that begin together share one write of the journal, and none goes on before it is done."""

import asyncio

import pytest

from reconciler.execution.journal import GATHER_S, Journal
from state import Intent, MemoryStore, StateError
from tests.unit.state.samples import a_run


class Counting(MemoryStore):
    """Knows what was written at once; fails when told to."""

    def __init__(self) -> None:
        super().__init__()
        self.writes: list[int] = []
        self.broken = False
        self.begin_run(a_run())

    def intents(self, run_id: str, intents: tuple[Intent, ...]) -> tuple[int, ...]:
        if self.broken:
            raise StateError("the disk is full")
        self.writes.append(len(intents))
        return super().intents(run_id, intents)


def draft(name: str) -> Intent:
    return Intent(name, "pair/tiny", None, "start", "c", f"op-{name}", 1.0)


async def test_steps_that_begin_together_are_one_write_and_have_their_own_entries() -> None:
    store = Counting()
    journal = Journal(store, "r1")
    first = await asyncio.gather(*(journal.intend(draft(name)) for name in "abc"))
    later = await journal.intend(draft("d"))
    assert ([3, 1], [1, 2, 3], 4) == (store.writes, first, later)
    assert ["a", "b", "c", "d"] == [entry.step_id for entry in store.open_entries()]


async def test_who_is_cancelled_before_leaves_no_entry_and_the_others_theirs() -> None:
    store = Counting()
    journal = Journal(store, "r1")
    tasks = [asyncio.ensure_future(journal.intend(draft(name))) for name in "ab"]
    asyncio.get_running_loop().call_soon(tasks[0].cancel)
    done = await asyncio.gather(*tasks, return_exceptions=True)
    assert (True, 1) == (isinstance(done[0], asyncio.CancelledError), done[1])
    assert ["b"] == [entry.step_id for entry in store.entries("r1")]


async def test_when_all_are_cancelled_nothing_is_written() -> None:
    store = Counting()
    task = asyncio.ensure_future(Journal(store, "r1").intend(draft("a")))
    asyncio.get_running_loop().call_soon(task.cancel)
    await asyncio.wait([task])
    await asyncio.sleep(2 * GATHER_S)
    assert [] == store.writes


async def test_what_cannot_be_written_stops_every_one_of_them() -> None:
    store = Counting()
    store.broken = True
    journal = Journal(store, "r1")
    done = await asyncio.gather(*(journal.intend(draft(name)) for name in "ab"), return_exceptions=True)
    assert ["the disk is full"] * 2 == [str(error) for error in done]
    store.broken = False
    assert 1 == await journal.intend(draft("c"))


async def test_a_run_that_is_not_begun_has_no_journal() -> None:
    with pytest.raises(StateError):
        await Journal(Counting(), "nobody").intend(draft("a"))
