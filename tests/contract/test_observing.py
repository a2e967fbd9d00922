"""Contract of `protocols.Observer`."""

import asyncio

from reconciler.core import identity
from reconciler.core.diff import changes
from reconciler.nodes.protocols import Fleet
from tests.contract.programs import CRASHER, SLEEPER, WEB, WEB_PORT
from tests.contract.subject import MODELS, NAME, NOWHERE, Scene, Subject, fleet_scene, labels_of, scene


@fleet_scene
async def test_a_bare_node_says_what_it_is(fleet: Fleet, subject: Subject) -> None:
    node = await fleet.connect(subject.name, 10)
    facts = await node.observer.observe()
    assert node.name == facts.node == subject.name
    assert (facts.platform, facts.store) == (subject.platform, subject.store)
    assert facts.containers == ()
    assert facts.boot_id
    assert facts.docker_version
    assert facts.docker_root.startswith("/")
    assert facts.disk_free_bytes
    assert facts.memory_available_bytes is not None
    assert facts.memory_total_bytes is not None
    assert 0 < facts.memory_available_bytes <= facts.memory_total_bytes


@fleet_scene
async def test_a_node_tells_of_its_wires_its_clock_and_who_holds_its_memory(fleet: Fleet, subject: Subject) -> None:
    """Optional facts, all of them; here they can be had."""
    node = await fleet.connect(subject.name, 10)
    host = (await node.observer.observe()).host
    wire = host.with_address(subject.address)
    assert wire is not None
    assert ("eth0", True) == (wire.name, wire.is_up)
    assert () == host.rdma
    assert host.clock is not None
    assert 0.0 == host.clock.surely_off_s
    assert host.uptime_s
    assert host.gpu_support is not None
    assert "runc" in host.gpu_support.runtimes
    assert host.top_processes
    held = [item.memory_bytes for item in host.top_processes if item.memory_bytes is not None]
    assert sorted(held, reverse=True) == held


@scene
async def test_containers_in_all_states_are_seen(play: Scene, subject: Subject) -> None:
    await play.create(SLEEPER, "fleet-a-created")
    await play.run(SLEEPER, "fleet-b-running")
    await play.run(CRASHER, "fleet-c-exited")
    await play.ended("fleet-c-exited")
    facts = await play.node.observer.observe()
    assert {item.name: item.state for item in facts.containers} == {
        "fleet-a-created": "created",
        "fleet-b-running": "running",
        "fleet-c-exited": "exited",
    }
    assert [item.is_running for item in sorted(facts.containers, key=lambda item: item.name)] == [False, True, False]


@scene
async def test_containers_without_our_labels_are_foreign_and_their_env_is_not_kept(
    play: Scene, subject: Subject
) -> None:
    await play.run(SLEEPER, "somebodys")
    found = (await play.node.observer.observe()).container("somebodys")
    assert found is not None
    assert (found.owner, found.env) == (None, ())


@scene
async def test_ours_are_seen_alike_by_observe_and_inspect(play: Scene, subject: Subject) -> None:
    spec = play.spec(SLEEPER)
    labels = labels_of(spec, subject.name, play.image_id)
    made = await play.node.containers.create(NAME, spec, play.image_id, labels, {})
    await play.node.containers.start(made)
    seen = (await play.node.observer.observe()).container(NAME)
    assert seen is not None
    assert seen == await play.found(made)
    assert seen.owner is not None
    assert (seen.owner.gang, seen.owner.revision, seen.owner.operation) == ("solo/tiny", 1, "op-1")
    assert (seen.owner.ports, seen.owner.stop_grace_s) == ((30000,), 7.0)
    assert seen.owner == identity.owner_of(labels)
    assert changes(spec, seen) == ()


@scene
async def test_what_an_image_gives_is_told_of_ours_that_run(play: Scene, subject: Subject) -> None:
    """All that a container has beyond its spec is of its image."""
    spec = play.spec(SLEEPER)
    labels = labels_of(spec, subject.name, play.image_id)
    made = await play.node.containers.create(NAME, spec, play.image_id, labels, {})
    assert () == (await play.node.observer.observe()).defaults
    await play.node.containers.start(made)
    await play.run(SLEEPER, "somebodys")
    facts = await play.node.observer.observe()
    (given,) = facts.defaults
    seen = facts.container(NAME)
    assert seen is not None
    assert given == facts.defaults_of(seen.image_id)
    assert given.env
    assert dict(seen.env) == {**dict(given.env), **dict(spec.env)}
    assert seen.settings == given.settings


@scene
async def test_images_are_seen_by_their_content(play: Scene, subject: Subject) -> None:
    facts = await play.node.observer.observe()
    image = facts.image_for(subject.image)
    assert image is not None
    assert image.id == play.image_id
    assert facts.image_for(subject.missing) is None


@scene
async def test_listeners_name_their_container(play: Scene, subject: Subject) -> None:
    made = await play.run(WEB)
    async with asyncio.timeout(10):
        while not await play.node.engines.accepts("127.0.0.1", WEB_PORT, 2):
            await asyncio.sleep(0.1)
    listeners = {item.port: item for item in (await play.node.observer.observe()).listeners}
    assert listeners[WEB_PORT].container_id == made


@scene
async def test_observing_changes_nothing(play: Scene, subject: Subject) -> None:
    await play.create(SLEEPER)
    first, second = await play.node.observer.observe(), await play.node.observer.observe()
    assert (first.containers, first.images, first.boot_id) == (second.containers, second.images, second.boot_id)


@fleet_scene
async def test_of_the_paths_that_were_asked_for_the_missing_ones_are_told(fleet: Fleet, subject: Subject) -> None:
    node = await fleet.connect(subject.name, 10)
    assert () == (await node.observer.observe()).missing_paths
    assert (NOWHERE,) == (await node.observer.observe((MODELS, NOWHERE))).missing_paths
