"""An apply that is told to stop lets go in time whatever hangs, gives its leases back and leaves a whole journal."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from reconciler.core.events import Event, StepStarted
from reconciler.core.leases import Claim, Holder
from reconciler.core.outcome import Exit
from reconciler.fleet import Applied, Fleet
from reconciler.testing import Fault
from reconciler.testing.faults import Operation
from state import MemoryStore
from tests.lifecycle.harness import NAMES, QUAD, Story

PROMISED_S = 5.0


class Kept(Story):
    """A story whose journal can be looked into."""

    def __post_init__(self) -> None:
        self.store = MemoryStore()
        self.open_store = lambda location: self.store
        super().__post_init__()

    def stopped_at(self, op: str, after_s: float = 1.0, command: str = "apply") -> tuple[Applied, float]:
        """Interrupt an apply some time after its first step of this kind began; how it ended, and so long after."""
        asked_s: list[float] = []

        async def work(fleet: Fleet) -> tuple[Applied, float]:
            loop, stop = asyncio.get_running_loop(), asyncio.Event()

            def ask() -> None:
                asked_s.append(loop.time())
                stop.set()

            def take(event: Event) -> None:
                if isinstance(event, StepStarted) and event.step.op == op and not asked_s:
                    asked_s.append(0)
                    loop.call_later(after_s, ask)

            applied = await fleet.apply(fleet.plan(await fleet.observe()), take, stop, command)
            return applied, loop.time() - asked_s[-1]

        found: tuple[Applied, float] = self.run(work)
        return found

    def holders(self) -> list[Holder | None]:
        async def work(fleet: Fleet) -> list[Holder | None]:
            nodes = [await fleet.nodes.connect(name, 5) for name in NAMES]
            return [await node.leases.holder() for node in nodes]

        found: list[Holder | None] = self.run(work)
        return found


@pytest.fixture
def story(tmp_path: Path) -> Kept:
    """Two lanes run; the spec now wants the one over all four nodes, of another image."""
    story = Kept(tmp_path)
    assert Exit.OK == story.apply().exit
    story.place(QUAD)
    story.use(story.next_image)
    return story


HANGS: list[tuple[str, Operation]] = [
    ("pull", "stage"),
    ("create", "create"),
    ("stop", "stop"),
    ("start", "start"),
    ("ready", "accepts"),
    ("ready", "inspect"),
    ("verify", "http"),
    ("verify", "logs"),
    ("confirm", "rename"),
    ("create", "lease-check"),
    ("create", "lease-release"),
]


@pytest.mark.parametrize(("op", "hanging"), HANGS)
def test_whatever_hangs_holds_nothing_up(story: Kept, op: str, hanging: Operation) -> None:
    story.nodes.inject(Fault.hang(None, hanging, None, lambda call: begun(story, op)))
    applied, seconds = story.stopped_at(op)
    assert Exit.INTERRUPTED == applied.exit
    assert "goes on from here" in applied.summary
    assert seconds < PROMISED_S
    assert () == story.store.verify()
    story.nodes.heal()
    assert Exit.OK == story.apply().exit
    assert {"quad": 4} == story.running_lanes()
    assert ((), ()) == (story.store.open_entries(), story.store.verify())


def begun(story: Kept, op: str) -> bool:
    """Whether a step of this kind is under way."""
    return any(entry.op == op for entry in story.store.open_entries())


@pytest.mark.parametrize("op", ["pull", "create", "stop", "start", "ready", "verify"])
def test_leases_are_free_at_once_afterwards(story: Kept, op: str) -> None:
    """Else the next apply would have to wait until they lapse."""
    story.stopped_at(op, 0.0)
    assert [None, None, None, None] == story.holders()


def test_the_last_look_is_broken_off_and_the_run_is_not_ended_well(story: Kept) -> None:
    story.place(QUAD[:0])
    story.nodes.inject(Fault.hang("node4", "observe", None, lambda call: not begun_any(story)))
    applied, seconds = interrupted_when_done(story)
    assert (Exit.INTERRUPTED, True) == (applied.exit, seconds < PROMISED_S)


def begun_any(story: Kept) -> bool:
    return bool(story.store.open_entries()) or story.store.runs(1)[0].ended_at is not None


def interrupted_when_done(story: Kept) -> tuple[Applied, float]:
    """Interrupt a second after nothing is under way any more."""

    async def work(fleet: Fleet) -> tuple[Applied, float]:
        loop, stop = asyncio.get_running_loop(), asyncio.Event()
        plan = fleet.plan(await fleet.observe(), allow_empty=True)
        applying = asyncio.ensure_future(fleet.apply(plan, stop=stop))
        while story.store.runs(1)[0].ended_at is not None or story.store.open_entries() or not last_looks(story):
            await asyncio.sleep(0.1)
        began_s = loop.time()
        stop.set()
        return await applying, loop.time() - began_s

    found: tuple[Applied, float] = story.run(work)
    return found


def last_looks(story: Kept) -> bool:
    """Whether every container of before is gone, so that the nodes are only looked at."""
    return not story.containers()


def test_a_wait_for_a_lease_is_broken_off(story: Kept) -> None:
    async def work(fleet: Fleet) -> Any:
        loop, stop = asyncio.get_running_loop(), asyncio.Event()
        other = await fleet.nodes.connect("node2", 5)
        await other.leases.take(Claim("ops@laptop", "apply", "another run"))
        plan = fleet.plan(await fleet.observe())
        applying = asyncio.ensure_future(fleet.apply(plan, stop=stop, wait_s=None))
        await asyncio.sleep(60)
        began_s, mutations = loop.time(), len(story.nodes.mutations)
        stop.set()
        applied = await applying
        return applied.exit, loop.time() - began_s < PROMISED_S, len(story.nodes.mutations) - mutations

    assert (Exit.INTERRUPTED, True, 0) == story.run(work)


def test_an_interrupted_rollback_names_what_goes_on_from_there(tmp_path: Path) -> None:
    """`fleet resume` would only say that the rollback has to be said again."""
    applied, _ = Kept(tmp_path, QUAD).stopped_at("verify", command="rollback")
    assert "not done; the same `fleet rollback` goes on from here" in applied.summary
    applied, _ = Kept(tmp_path, QUAD).stopped_at("verify")
    assert "not done; `fleet resume` goes on from here" in applied.summary
