"""Contract of `protocols.Fleet`: sessions, and every way not to have one."""

import asyncio

import pytest

from reconciler.core.observed import UnknownKind
from reconciler.nodes.errors import NodeError, NodeUnknownError
from reconciler.nodes.observation import observe_one
from reconciler.nodes.protocols import Fleet
from tests.contract.programs import SLEEPER
from tests.contract.subject import NAME, Scene, Subject, fleet_scene, scene


async def refusal(fleet: Fleet, subject: Subject, deadline_s: float = 3.0) -> UnknownKind:
    """Why there is no session."""
    with pytest.raises(NodeUnknownError) as unknown:
        await fleet.connect(subject.name, deadline_s)
    assert unknown.value.fact.node == subject.name
    assert unknown.value.fact.reason
    return unknown.value.fact.kind


@fleet_scene
async def test_a_session_is_shared(fleet: Fleet, subject: Subject) -> None:
    first, second = await asyncio.gather(fleet.connect(subject.name, 10), fleet.connect(subject.name, 10))
    assert first is second
    assert await fleet.connect(subject.name, 10) is first


@fleet_scene
async def test_a_lost_session_fails_and_is_replaced(fleet: Fleet, subject: Subject) -> None:
    node = await fleet.connect(subject.name, 10)
    await node.observer.observe()
    subject.trouble("sessions dropped")
    with pytest.raises(NodeError) as lost:
        await node.observer.observe()
    assert lost.value.is_transport
    again = await fleet.connect(subject.name, 10)
    assert again is not node
    await again.observer.observe()


@fleet_scene
async def test_a_silent_node_is_unknown_at_the_deadline(fleet: Fleet, subject: Subject) -> None:
    subject.trouble("link cut")
    loop = asyncio.get_running_loop()
    since = loop.time()
    assert await refusal(fleet, subject) is UnknownKind.TIMEOUT
    assert 2.9 <= loop.time() - since < 5


@fleet_scene
async def test_a_node_that_falls_silent_keeps_the_observers_deadline(fleet: Fleet, subject: Subject) -> None:
    await (await fleet.connect(subject.name, 10)).observer.observe()
    subject.trouble("link cut")
    found = await observe_one(fleet, subject.name, 3.0)
    assert getattr(found, "kind", None) is UnknownKind.TIMEOUT


@fleet_scene
async def test_a_node_that_is_off_is_unknown(fleet: Fleet, subject: Subject) -> None:
    subject.trouble("power off")
    assert await refusal(fleet, subject) in {UnknownKind.REFUSED, UnknownKind.TIMEOUT}


@fleet_scene
async def test_another_host_key_is_named(fleet: Fleet, subject: Subject) -> None:
    subject.trouble("host key changed")
    assert await refusal(fleet, subject, 10.0) is UnknownKind.HOST_KEY_CHANGED


@fleet_scene
async def test_a_daemon_that_is_down_is_not_the_network(fleet: Fleet, subject: Subject) -> None:
    node = await fleet.connect(subject.name, 10)
    await node.observer.observe()
    subject.trouble("docker down")
    with pytest.raises(NodeUnknownError) as down:
        await node.observer.observe()
    assert down.value.fact.kind is UnknownKind.DOCKER_DOWN
    subject.mend()
    assert await fleet.connect(subject.name, 10) is node
    await node.observer.observe()


@scene
async def test_a_reboot_shows_and_ends_what_ran(play: Scene, subject: Subject) -> None:
    await play.run(SLEEPER)
    before = (await play.node.observer.observe()).boot_id
    subject.trouble("power off")
    with pytest.raises(NodeError) as lost:
        async with asyncio.timeout(60):
            await play.node.containers.inspect(NAME)
    assert lost.value.is_transport
    subject.mend()
    node = await play.fleet.connect(subject.name, 10)
    facts = await node.observer.observe()
    assert subject.store == facts.store
    assert [(item.name, item.state) for item in facts.containers] == [(NAME, "exited")]
    assert before
