"""What people do to containers, calls that overtake each other, and controllers that share nothing but the nodes."""

import asyncio

import pytest

from reconciler.nodes.errors import ErrorKind, NodeError, NodeUnknownError
from reconciler.testing import Call, Fault, Happening
from tests.unit.testing.samples import a_fleet, boot, head, play


def test_a_person_starts_stops_and_deletes_a_container() -> None:
    fleet = a_fleet()

    async def scene() -> None:
        node = await fleet.connect("n1", 5)
        made = await boot(node, "head", head())
        fleet.node("n1").stop_container("head")
        found = await node.containers.inspect(made)
        assert found is not None
        assert "exited" == found.state
        fleet.node("n1").start_container("head")
        assert fleet.node("n1").runtime.is_running("head")
        fleet.node("n1").delete_container("head")
        assert await node.containers.inspect(made) is None

    play(fleet, scene)


def test_what_happens_is_told_with_who_did_it() -> None:
    fleet = a_fleet()
    seen: list[Happening] = []
    fleet.world.on_happening = seen.append

    async def scene() -> None:
        other = await fleet.second("other").connect("n1", 5)
        await boot(other, "head", head())
        fleet.node("n1").stop_container("head")

    play(fleet, scene)
    told = [(item.what, item.by) for item in seen if item.what != "image"]
    assert [("created", "other"), ("started", "other"), ("exited", "")] == told
    assert list(fleet.history()) == seen


def test_an_effect_is_told_when_it_happens_and_not_when_it_does_not() -> None:
    fleet = a_fleet()
    effects: list[Call] = []
    fleet.on_effect = effects.append
    fleet.inject(Fault.fail("n1", "start"))

    async def scene() -> None:
        node = await fleet.connect("n1", 5)
        with pytest.raises(NodeError):
            await boot(node, "head", head())
        await node.containers.start("head")

    play(fleet, scene)
    assert ["stage", "create", "start"] == [call.operation for call in effects if call.mutating]
    assert {"controller"} == {call.by for call in effects}


def test_a_delayed_call_is_overtaken_by_a_later_one() -> None:
    fleet = a_fleet()
    fleet.inject(Fault.delay("n1", "create", 15.0))

    async def scene() -> None:
        node = await fleet.connect("n1", 5)
        late = asyncio.ensure_future(boot(node, "late", head()))
        await asyncio.sleep(14)
        await boot(node, "early", head())
        await late

    play(fleet, scene)
    assert ["early", "late"] == [item.name for item in fleet.history() if item.what == "created"]


@pytest.mark.parametrize(("after", "state"), [(False, "created"), (True, "running")])
def test_a_call_delayed_beyond_its_deadline_has_had_its_effect_only_on_its_way_back(after: bool, state: str) -> None:
    fleet = a_fleet()
    fleet.inject(Fault.delay("n1", "start", 30.0, after=after))

    async def scene() -> None:
        node = await fleet.connect("n1", 5)
        with pytest.raises(NodeError) as late:
            await boot(node, "head", head())
        assert ErrorKind.TIMEOUT is late.value.kind
        found = await node.containers.inspect("head")
        assert found is not None
        assert state == found.state

    play(fleet, scene)


def test_a_daemon_that_restarts_is_away_for_a_while_and_stops_what_ran() -> None:
    fleet = a_fleet()

    async def scene() -> None:
        node = await fleet.connect("n1", 5)
        await boot(node, "head", head())
        fleet.node("n1").restart_docker(5.0)
        with pytest.raises(NodeUnknownError):
            await node.observer.observe()
        await asyncio.sleep(6)
        found = (await node.observer.observe()).container("head")
        assert found is not None
        assert "exited" == found.state

    play(fleet, scene)


def test_the_end_of_one_controllers_sessions_leaves_those_of_another() -> None:
    fleet = a_fleet()

    async def scene() -> None:
        mine, other = await fleet.connect("n1", 5), await fleet.second("other").connect("n1", 5)
        await mine.close()
        await other.observer.observe()
        with pytest.raises(NodeError):
            await mine.observer.observe()

    play(fleet, scene)


def test_a_controller_whose_own_network_is_down_hears_nothing_while_another_does() -> None:
    fleet = a_fleet()

    async def scene() -> None:
        other = fleet.second("other")
        mine, theirs = await fleet.connect("n1", 5), await other.connect("n1", 5)
        other.is_cut = True
        await mine.observer.observe()
        with pytest.raises(NodeError) as cut:
            await theirs.observer.observe()
        assert cut.value.is_transport

    play(fleet, scene)


def test_the_faults_that_came_true_are_known_with_their_calls() -> None:
    fleet = a_fleet()
    fault = Fault.lose_reply(None, None, 2)
    fleet.inject(fault, Fault.fail("n2", "start"))

    async def scene() -> None:
        node = await fleet.connect("n1", 5)
        with pytest.raises(NodeError):
            await node.observer.observe()

    play(fleet, scene)
    assert [(fault, "observe", "n1")] == [(struck, call.operation, call.node) for struck, call in fleet.struck]
