"""Every fault: what it does to the caller, and what it does to the node."""

import asyncio

import pytest

from reconciler.core.observed import SourceImage, SourceMissing, SourceUnknown, UnknownKind
from reconciler.nodes.errors import ErrorKind, NodeError, NodeUnknownError
from reconciler.testing import ControllerKilled, Fault, SimNodeConfig, SimulatedFleet, run_simulated
from tests.unit.testing.samples import IMAGE, a_fleet, boot, head, ignore, play


def test_a_call_that_fails_before_its_effect() -> None:
    fleet = a_fleet()
    fleet.inject(Fault.fail("n1", "create", ErrorKind.DENIED))

    async def scene() -> None:
        node = await fleet.connect("n1", 5)
        with pytest.raises(NodeError) as failed:
            await boot(node, "head", head())
        assert failed.value.kind is ErrorKind.DENIED
        assert await node.containers.inspect("head") is None
        await boot(node, "head", head())

    play(fleet, scene)


def test_a_lost_reply_means_that_it_happened() -> None:
    fleet = a_fleet()
    fleet.inject(Fault.lose_reply("n1", "start"))

    async def scene() -> None:
        node = await fleet.connect("n1", 5)
        with pytest.raises(NodeError) as lost:
            await boot(node, "head", head())
        assert lost.value.is_transport
        found = await node.containers.inspect("head")
        assert found is not None
        assert found.state == "running"

    play(fleet, scene)


def test_a_hanging_call_ends_at_its_deadline_without_effect() -> None:
    fleet = a_fleet()
    fleet.inject(Fault.hang("n1", "start"))

    async def scene() -> None:
        node = await fleet.connect("n1", 5)
        with pytest.raises(NodeError) as late:
            await boot(node, "head", head())
        assert late.value.kind is ErrorKind.TIMEOUT
        found = await node.containers.inspect("head")
        assert found is not None
        assert found.state == "created"

    play(fleet, scene)


def test_a_hanging_stage_ends_when_it_is_cancelled() -> None:
    fleet = a_fleet()
    fleet.inject(Fault.hang("n1", "stage"))

    async def scene() -> None:
        node = await fleet.connect("n1", 5)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(3600):
                await node.images.stage(IMAGE.pin, "linux/amd64", ignore)
        assert await node.images.present(IMAGE.pin) is None

    play(fleet, scene)


def test_the_nth_call_and_those_a_condition_picks() -> None:
    fleet = a_fleet()
    fleet.inject(
        Fault.fail("n1", "inspect", nth=2),
        Fault.fail(None, "logs", nth=None, when=lambda call: call.ref == "that"),
    )

    async def scene() -> None:
        node = await fleet.connect("n1", 5)
        await node.containers.inspect("a")
        with pytest.raises(NodeError):
            await node.containers.inspect("b")
        await node.containers.inspect("c")
        for _ in range(2):
            with pytest.raises(NodeError) as failed:
                await node.containers.logs("that", 1)
            assert failed.value.kind is ErrorKind.REFUSED
        with pytest.raises(NodeError) as missing:
            await node.containers.logs("this", 1)
        assert missing.value.kind is ErrorKind.NOT_FOUND

    play(fleet, scene)


def test_healing_forgets_the_faults() -> None:
    fleet = a_fleet()
    fleet.inject(Fault.fail("n1", "observe", nth=None))
    fleet.heal()

    async def scene() -> None:
        await (await fleet.connect("n1", 5)).observer.observe()

    play(fleet, scene)


def test_a_reboot_in_the_middle_ends_the_session_and_all_containers() -> None:
    fleet = a_fleet()
    fleet.inject(Fault.do("n1", "start", lambda fleet: fleet.node("n1").reboot()))

    async def scene() -> None:
        node = await fleet.connect("n1", 5)
        before = (await node.observer.observe()).boot_id
        with pytest.raises(NodeError) as lost:
            await boot(node, "head", head())
        assert lost.value.kind is ErrorKind.LOST
        facts = await (await fleet.connect("n1", 5)).observer.observe()
        assert facts.boot_id != before
        assert [(item.state, item.exit_code) for item in facts.containers] == [("exited", 255)]

    play(fleet, scene)


def test_a_node_that_is_off_refuses_and_comes_back_with_its_images() -> None:
    fleet = a_fleet()
    fleet.node("n1").load_image(IMAGE.digest)
    fleet.node("n1").power_off()

    async def scene() -> None:
        with pytest.raises(NodeUnknownError) as off:
            await fleet.connect("n1", 5)
        assert off.value.fact.kind is UnknownKind.REFUSED
        fleet.node("n1").power_on()
        node = await fleet.connect("n1", 5)
        assert await node.images.present(IMAGE.pin) is not None

    play(fleet, scene)


def test_a_cut_link_is_silence_until_the_deadline() -> None:
    fleet = a_fleet()

    async def scene() -> None:
        node = await fleet.connect("n1", 5)
        await boot(node, "head", head())
        fleet.node("n1").cut_link()
        before = fleet.now_s
        with pytest.raises(NodeError) as late:
            await node.observer.observe()
        assert late.value.kind is ErrorKind.TIMEOUT
        assert fleet.now_s - before == pytest.approx(20, abs=0.1)
        fleet.node("n1").mend_link()
        assert (await node.observer.observe()).containers[0].state == "running"

    play(fleet, scene)


def test_a_session_over_a_silent_link_is_given_up() -> None:
    fleet = a_fleet()

    async def scene() -> None:
        node = await fleet.connect("n1", 5)
        fleet.node("n1").cut_link()
        with pytest.raises(NodeError) as lost:
            await node.images.stage(IMAGE.pin, "linux/amd64", ignore)
        assert lost.value.kind is ErrorKind.LOST
        with pytest.raises(NodeUnknownError) as late:
            await fleet.connect("n1", 5)
        assert late.value.fact.kind is UnknownKind.TIMEOUT

    play(fleet, scene)


def test_a_cut_that_is_mended_in_time_only_delays() -> None:
    fleet = a_fleet()

    async def scene() -> None:
        node = await fleet.connect("n1", 5)
        fleet.node("n1").cut_link()
        fleet.after(5, lambda fleet: fleet.node("n1").mend_link())
        before = fleet.now_s
        await node.observer.observe()
        assert 5 <= fleet.now_s - before < 7

    play(fleet, scene)


def test_engines_go_on_while_docker_is_down() -> None:
    fleet = a_fleet()

    async def scene() -> None:
        node = await fleet.connect("n1", 5)
        await boot(node, "head", head())
        await asyncio.sleep(31)
        fleet.node("n1").stop_docker()
        with pytest.raises(NodeUnknownError) as down:
            await node.observer.observe()
        assert down.value.fact.kind is UnknownKind.DOCKER_DOWN
        assert (await node.engines.http("127.0.0.1", 30000, "GET", "/health", None, 5)).status == 200
        fleet.node("n1").start_docker()
        assert (await node.observer.observe()).containers[0].state == "running"

    play(fleet, scene)


@pytest.mark.parametrize("kind", [UnknownKind.HOST_KEY_CHANGED, UnknownKind.AUTH, UnknownKind.DOCKER_DENIED])
def test_a_session_that_is_denied_says_why(kind: UnknownKind) -> None:
    fleet = a_fleet()
    fleet.node("n1").deny(kind)

    async def scene() -> None:
        with pytest.raises(NodeUnknownError) as denied:
            await fleet.connect("n1", 5)
        assert denied.value.fact.kind is kind
        fleet.node("n1").admit()
        await fleet.connect("n1", 5)

    play(fleet, scene)


def test_connecting_can_fail_in_every_mode() -> None:
    fleet = a_fleet()
    fleet.inject(Fault.fail("n1", "connect", ErrorKind.LOST), Fault.hang("n1", "connect", nth=2))

    async def scene() -> None:
        for kind in (UnknownKind.LOST, UnknownKind.TIMEOUT):
            with pytest.raises(NodeUnknownError) as failed:
                await fleet.connect("n1", 5)
            assert failed.value.fact.kind is kind
        await fleet.connect("n1", 5)
        with pytest.raises(NodeUnknownError) as unknown:
            await fleet.connect("n9", 5)
        assert unknown.value.fact.kind is UnknownKind.UNRESOLVED

    play(fleet, scene)


def test_a_full_disk_stops_the_stage_and_leaves_nothing() -> None:
    fleet = a_fleet()
    fleet.node("n1").fill_disk(leave_bytes=500_000_000)

    async def scene() -> None:
        node = await fleet.connect("n1", 5)
        with pytest.raises(NodeError) as full:
            await node.images.stage(IMAGE.pin, "linux/amd64", ignore)
        assert full.value.kind is ErrorKind.NO_SPACE
        assert await node.images.present(IMAGE.pin) is None

    play(fleet, scene)


def test_docker_that_dies_stops_the_stage() -> None:
    fleet = a_fleet()
    fleet.after(5, lambda fleet: fleet.node("n1").stop_docker())

    async def scene() -> None:
        node = await fleet.connect("n1", 5)
        with pytest.raises(NodeUnknownError):
            await node.images.stage(IMAGE.pin, "linux/amd64", ignore)

    play(fleet, scene)


def test_what_the_source_can_say() -> None:
    fleet = a_fleet()

    async def scene() -> None:
        said = await fleet.sources.describe(IMAGE.pin)
        assert isinstance(said, SourceImage)
        assert said.platforms == ("linux/amd64", "linux/arm64")
        fleet.inject(Fault.fail(None, "describe"))
        assert isinstance(await fleet.sources.describe(IMAGE.pin), SourceUnknown)
        fleet.registry.withdrawn.add(IMAGE.digest)
        assert isinstance(await fleet.sources.describe(IMAGE.pin), SourceMissing)
        node = await fleet.connect("n1", 5)
        with pytest.raises(NodeError) as missing:
            await node.images.stage(IMAGE.pin, "linux/amd64", ignore)
        assert missing.value.kind is ErrorKind.NOT_FOUND
        fleet.registry.is_up = False
        assert isinstance(await fleet.sources.describe(IMAGE.pin), SourceUnknown)

    play(fleet, scene)


def test_an_image_of_another_platform_is_refused() -> None:
    fleet = SimulatedFleet([SimNodeConfig("n1", "10.0.0.1", "linux/riscv64")], [IMAGE])

    async def scene() -> None:
        node = await fleet.connect("n1", 5)
        with pytest.raises(NodeError) as refused:
            await node.images.stage(IMAGE.pin, "linux/riscv64", ignore)
        assert refused.value.kind is ErrorKind.REFUSED

    play(fleet, scene)


@pytest.mark.parametrize("after", [True, False])
def test_a_killed_controller_does_nothing_more_and_the_nodes_live_on(after: bool) -> None:
    fleet = a_fleet()
    fleet.inject(Fault.kill("n1", "start", after=after))

    async def first() -> None:
        node = await fleet.connect("n1", 5)
        try:
            await boot(node, "head", head())
        finally:
            with pytest.raises(NodeError):
                await node.containers.remove("head")

    async def second() -> str:
        node = await fleet.connect("n1", 5)
        found = await node.containers.inspect("head")
        assert found is not None
        return found.state

    with pytest.raises(ControllerKilled):
        run_simulated(first())
    before = fleet.now_s
    assert run_simulated(second()) == ("running" if after else "created")
    assert fleet.now_s > before
