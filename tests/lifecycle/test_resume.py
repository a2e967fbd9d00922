"""A run that was killed or interrupted: what it left open is settled by looking, and `fleet resume` goes on from it."""

import functools
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reconciler.cli.main import run
from reconciler.cli.wiring import Wiring
from reconciler.core.exits import Exit
from reconciler.core.leases import Claim
from reconciler.core.machine import Status
from reconciler.fleet import Fleet
from reconciler.resume import Settling, settle, unfinished
from reconciler.testing import Call, ControllerKilled, Fault, run_simulated
from state import Entry, MemoryStore
from tests.lifecycle.harness import PAIR_AND_SOLO, QUAD, Story

Command = Callable[..., tuple[int, str, str]]
AGES_LATER = 4e9
EFFECTS = {"create", "start", "stop", "rename", "remove", "stage"}


class Told(Story):
    """A story whose journal can be looked into, and outlives a killed controller."""

    def __post_init__(self) -> None:
        self.store = MemoryStore()
        self.open_store = lambda path: self.store
        super().__post_init__()

    def settle(self) -> Settling:
        async def work(fleet: Fleet) -> Settling:
            return await settle(self.store, fleet.nodes, fleet.desired, AGES_LATER)

        found: Settling = self.run(work)
        return found


@pytest.fixture
def story(tmp_path: Path) -> Told:
    return Told(tmp_path)


def killed(story: Told, number: int, *, after: bool) -> str:
    """Kill the controller before or after an effect; the id of its run."""
    story.nodes.inject(Fault.kill(None, None, number, lambda call: call.mutating, after=after))
    assert story.apply_until_killed()
    story.nodes.heal()
    return story.store.runs(1)[0].id


def by_ref(entries: tuple[Entry, ...]) -> dict[str, str]:
    return {f"{entry.op} {entry.node}": str(entry.result) for entry in entries}


# settling


def test_with_nothing_open_no_node_is_asked(story: Told) -> None:
    story.apply()
    calls = len(story.nodes.calls)
    assert Settling() == story.settle()
    assert calls == len(story.nodes.calls)


@pytest.mark.parametrize("after", [False, True])
def test_whenever_a_controller_is_killed_all_that_was_open_is_settled_and_its_run_ended(
    tmp_path: Path, after: bool
) -> None:
    """Over every effect of a change that stops two lanes and boots a third."""
    seen = set()
    for number in range(1, 60, 2):
        story = Told(tmp_path / str(number))
        story.apply()
        story.place(QUAD)
        story.nodes.inject(Fault.kill(None, None, number, lambda call: call.mutating, after=after))
        if not story.apply_until_killed():
            break
        story.nodes.heal()
        run_id = story.store.runs(1)[0].id
        assert story.store.open_entries(), number
        settling = story.settle()
        assert ((), (run_id,)) == (settling.left, settling.ended), number
        assert ((), ()) == (story.store.open_entries(), story.store.verify()), number
        assert Exit.INTERRUPTED == story.store.runs(1)[0].exit_code
        assert Settling() == story.settle(), number
        seen |= {entry.op for entry in settling.settled}
    assert {"create", "start", "stop", "pull", "confirm", "remove"} <= seen


@pytest.mark.parametrize(("after", "result"), [(False, Status.SKIPPED), (True, Status.APPLIED)])
@pytest.mark.parametrize("operation", ["create", "start", "stop", "rename", "remove"])
def test_what_is_told_of_an_effect_is_what_happened(story: Told, operation: Any, after: bool, result: Status) -> None:
    story.apply()
    story.place(QUAD)
    kills: list[Call] = []

    def first(call: Call) -> bool:
        fits = bool(call.operation == operation)
        kills.extend([call] if fits else [])
        return fits

    story.nodes.inject(Fault.kill(None, None, 1, first, after=after))
    assert story.apply_until_killed()
    story.nodes.heal()
    ops = {"rename": {"confirm", "unprove"}}.get(operation, {operation})
    (entry,) = [item for item in story.settle().settled if item.op in ops and item.node == kills[0].node]
    assert result == entry.result
    assert AGES_LATER == entry.ended_at


def test_a_run_whose_controller_holds_a_lease_is_under_way_and_left_alone(story: Told) -> None:
    """Another controller that shares the journal would settle what is just being done."""
    run_id = killed(story, 3, after=True)
    was_open = story.store.open_entries()

    async def work(fleet: Fleet) -> Settling:
        for name in ("node1", "node2", "node3"):
            node = await fleet.nodes.connect(name, 5)
            await node.leases.take(Claim("ops@laptop", "apply", run_id))
        return await settle(story.store, fleet.nodes, fleet.desired, AGES_LATER)

    settling = story.run(work)
    assert ((), was_open, ()) == (settling.settled, settling.left, settling.ended)
    assert [run_id] == list(settling.working)
    assert was_open == story.store.open_entries()


def test_our_own_lease_proves_that_the_other_is_gone(story: Told) -> None:
    run_id = killed(story, 3, after=True)

    async def work(fleet: Fleet) -> Settling:
        for name in ("node1", "node2", "node3"):
            node = await fleet.nodes.connect(name, 5)
            await node.leases.take(Claim("ops@laptop", "apply", "the next run"))
        return await settle(story.store, fleet.nodes, fleet.desired, AGES_LATER)

    settling = story.run(work)
    assert (run_id,) == settling.ended
    assert {} == settling.working


def test_what_cannot_be_looked_at_stays_open_until_it_can(story: Told) -> None:
    run_id = killed(story, 3, after=True)
    nodes = {entry.node for entry in story.store.open_entries() if entry.node}
    for name in nodes:
        story.nodes.node(name).power_off()
    settling = story.settle()
    assert ((), ()) == (settling.settled, settling.ended)
    assert settling.left == story.store.open_entries() != ()
    assert () == story.store.verify()
    for name in nodes:
        story.nodes.node(name).power_on()
    assert (run_id,) == story.settle().ended
    assert () == story.store.open_entries()


def test_a_run_of_another_fleet_in_the_same_store_is_none_of_ours(story: Told) -> None:
    killed(story, 3, after=True)

    async def work(fleet: Fleet) -> Settling:
        return await settle(story.store, fleet.nodes, replace(fleet.desired, fleet="other"), AGES_LATER)

    calls = len(story.nodes.calls)
    assert Settling() == story.run(work)
    assert calls == len(story.nodes.calls)


# what there is to go on from


def test_a_run_that_ended_is_not_unfinished(story: Told) -> None:
    story.apply()
    assert unfinished(story.store, "lab") is None


def test_an_interrupted_run_is_unfinished_with_the_gangs_it_touched(story: Told) -> None:
    story.apply(stop_after_s=1.0)
    found = unfinished(story.store, "lab")
    assert found is not None
    assert story.store.runs(1)[0].id == found.run.id
    assert found.gangs <= {"pair-a/pair", "single-3/solo"}
    assert unfinished(story.store, "other") is None


def test_a_later_run_that_came_to_its_end_has_seen_its_gangs_through(story: Told) -> None:
    story.apply(stop_after_s=1.0)
    first = story.store.runs(1)[0].id
    story.apply()
    assert unfinished(story.store, "lab") is None
    assert unfinished(story.store, "lab", first) is None


# the command


@pytest.fixture
def fleet(story: Told, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """`fleet WORDS --file SPEC` in this process: exit code, standard output, standard error."""
    wiring = Wiring(lambda spec: story.nodes, functools.partial(run_simulated, seed=story.seed))
    load = Fleet.load
    monkeypatch.setattr(Fleet, "load", lambda path, connect, *_: load(path, connect, story.open_store))

    def command(*words: str) -> tuple[int, str, str]:
        code = run([*words, "--file", str(story.folder / "fleet.yaml")], wiring)
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return command


def test_with_nothing_unfinished_it_says_so(story: Told, fleet: Command) -> None:
    assert 0 == fleet("resume")[0]
    story.apply()
    code, output, _ = fleet("resume")
    assert (0, "Nothing to resume: every run came to its end, or a later one saw its lanes through.\n") == (
        code,
        output,
    )
    assert {"run": None, "exit": 0, "plan": None, "result": None} == json.loads(fleet("resume", "--json")[1])


def test_a_killed_run_is_told_settled_and_seen_through(story: Told, fleet: Command) -> None:
    run_id = killed(story, 3, after=True)
    code, output, error = fleet("resume", "--yes")
    assert (0, "") == (code, error)
    assert output.startswith(f"run {run_id} (`fleet apply`, ")
    assert "did not come to its end\n" in output
    assert ": settled by looking: " in output
    assert {"pair": 2, "solo": 1} == story.running_lanes()
    assert "Nothing to resume" in fleet("resume")[1]


def test_an_interrupted_run_is_gone_on_from_by_its_id(story: Told, fleet: Command) -> None:
    story.apply(stop_after_s=1.0)
    run_id = story.store.runs(1)[0].id
    code, output, _ = fleet("resume", run_id, "--yes")
    assert 0 == code
    assert f"run {run_id} " in output
    assert story.plan().is_settled


def test_only_what_the_run_touched_is_planned(story: Told, fleet: Command) -> None:
    story.place(PAIR_AND_SOLO[:1])
    story.apply(stop_after_s=1.0)
    story.place(PAIR_AND_SOLO)
    code, _, error = fleet("resume", "--yes")
    assert 0 == code
    assert "the spec has changed since" in error
    assert {"pair": 2} == story.running_lanes()


def test_a_change_of_one_lane_for_two_is_gone_on_with_as_a_whole(story: Told, fleet: Command) -> None:
    """The run got as far as one of the lanes that make room; the others hang together with it."""
    story.apply()
    story.place(QUAD)
    story.nodes.inject(Fault.kill(None, "stop", 1))
    assert story.apply_until_killed()
    story.nodes.heal()
    assert 0 == fleet("resume", "--yes")[0]
    assert {"quad": 4} == story.running_lanes()
    assert () == story.nodes.overlaps()


def test_an_interrupted_down_goes_on_down(story: Told, fleet: Command) -> None:
    story.apply()
    story.nodes.inject(Fault.kill("node2", "stop", 1))
    with pytest.raises(ControllerKilled):
        fleet("down", "pair", "--yes")
    story.nodes.heal()
    assert 0 == fleet("resume", "--yes")[0]
    assert {"solo": 1} == story.running_lanes()
    assert "down" == story.store.runs(1)[0].command


def test_an_interrupted_rollback_does_not_go_forward_again(story: Told, fleet: Command) -> None:
    story.apply()
    story.place(QUAD)

    async def work(fleet: Fleet) -> None:
        await fleet.apply(fleet.plan(await fleet.observe()), command="rollback")

    story.nodes.inject(Fault.kill(None, "create", 1))
    with pytest.raises(ControllerKilled):
        story.run(work)
    story.nodes.heal()
    mutations = len(story.nodes.mutations)
    code, _, error = fleet("resume", "--yes")
    assert 3 == code
    assert "was a `fleet rollback` of quad/quad" in error
    assert mutations == len(story.nodes.mutations)


def test_a_run_that_is_under_way_is_not_taken_over(story: Told, fleet: Command) -> None:
    run_id = killed(story, 3, after=True)

    async def hold() -> None:
        for name in ("node1", "node2", "node3"):
            node = await story.nodes.connect(name, 5)
            await node.leases.take(Claim("ops@laptop", "apply of plan 1a2b", run_id))

    run_simulated(hold(), seed=1)
    mutations = len(story.nodes.mutations)
    code, _, error = fleet("resume", "--yes")
    assert 5 == code
    assert f"run {run_id} is under way: ops@laptop" in error
    assert mutations == len(story.nodes.mutations)


def test_a_run_that_nobody_recorded_is_an_error(story: Told, fleet: Command) -> None:
    code, _, error = fleet("resume", "1a2b3c")
    assert 1 == code
    assert "no run 1a2b3c is recorded" in error


def test_as_json_it_says_what_was_open_beside_the_plan(story: Told, fleet: Command) -> None:
    run_id = killed(story, 3, after=True)
    code, output, _ = fleet("resume", "--json", "--yes")
    told = json.loads(output)
    assert (0, 0, run_id) == (code, told["exit"], told["run"]["id"])
    assert {"applied", "skipped"} >= {item["result"] for item in told["settled"]}
    assert told["settled"]
    assert [] == told["open"]
    assert not told["spec_changed"]
    assert told["result"]["run"] != run_id


def test_without_a_yes_nothing_is_changed_but_what_was_open_is_settled(story: Told, fleet: Command) -> None:
    killed(story, 3, after=True)
    mutations = len(story.nodes.mutations)
    assert 1 == fleet("resume")[0]
    assert mutations == len(story.nodes.mutations)
    assert () == story.store.open_entries()
    assert 0 == fleet("resume", "--yes")[0]
