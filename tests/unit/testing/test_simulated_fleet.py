"""The simulated fleet as a whole: repeatable, counted, with a history to assert on."""

import asyncio
from math import inf

import pytest

from reconciler.core import identity
from reconciler.core.desired import ContainerSpec, ImagePin, Mount
from reconciler.core.observed import Owner
from reconciler.nodes.errors import ErrorKind, NodeError
from reconciler.nodes.observation import observe_all
from reconciler.nodes.protocols import Fleet, Progress
from reconciler.testing import Fault, Happening, SimImage, SimulatedFleet, overlaps, run_simulated, sim_nodes, spans
from tests.unit.testing.samples import IMAGE, a_fleet, boot, head, ignore, play, worker


def a_course(seed: int) -> SimulatedFleet:
    """Some work on two nodes at once, with a fault in it."""
    fleet = a_fleet(2, seed)
    fleet.inject(Fault.lose_reply("n2", "create"))

    async def one(name: str) -> None:
        node = await fleet.connect(name, 5)
        for _ in range(3):
            await node.observer.observe()
        try:
            await boot(node, "worker", worker(fleet.node(name).config.address))
        except NodeError:
            await node.containers.start("worker")

    async def main() -> None:
        await asyncio.gather(one("n1"), one("n2"))

    run_simulated(main(), seed)
    return fleet


def test_it_is_a_fleet() -> None:
    fleet: Fleet = a_fleet()
    assert fleet.sources is not None


def test_the_same_seed_gives_the_same_calls_times_and_ids() -> None:
    first, second = a_course(3), a_course(3)
    assert first.calls == second.calls
    assert first.history() == second.history()


def test_another_seed_gives_other_times_but_the_same_work() -> None:
    first, second = a_course(3), a_course(4)
    assert first.calls != second.calls
    assert {(call.node, call.operation) for call in first.calls} == {(c.node, c.operation) for c in second.calls}


def test_calls_that_change_something_are_told_apart() -> None:
    fleet = a_fleet(3)

    async def scene() -> None:
        await observe_all(fleet, ["n1", "n2", "n3"])
        node = await fleet.connect("n1", 5)
        await node.images.present(IMAGE.pin)
        await node.containers.inspect("x")
        await fleet.sources.describe(IMAGE.pin)
        assert fleet.mutations == ()
        await boot(node, "head", head())

    play(fleet, scene)
    assert [call.operation for call in fleet.mutations] == ["stage", "create", "start"]


def test_sessions_are_shared_until_they_are_lost() -> None:
    fleet = a_fleet()

    async def scene() -> None:
        node = await fleet.connect("n1", 5)
        assert await fleet.connect("n1", 5) is node
        fleet.node("n1").drop_sessions()
        with pytest.raises(NodeError) as lost:
            await node.observer.observe()
        assert lost.value.kind is ErrorKind.LOST
        assert await fleet.connect("n1", 5) is not node
        await fleet.close()

    play(fleet, scene)


def test_staging_takes_the_time_of_its_bytes_and_tells_how_far_it_is() -> None:
    fleet = a_fleet()
    seen: list[Progress] = []

    async def scene() -> None:
        node = await fleet.connect("n1", 5)
        before = fleet.now_s
        await node.images.stage(IMAGE.pin, "linux/amd64", seen.append)
        assert fleet.now_s - before == pytest.approx(10, abs=0.1)
        await node.images.stage(IMAGE.pin, "linux/amd64", seen.append)
        assert fleet.now_s - before == pytest.approx(10, abs=0.2)

    play(fleet, scene)
    assert (seen[-1].done_bytes, seen[-1].total_bytes, len(seen)) == (10**9, 10**9, 10)


def test_the_two_stores_know_one_image_by_different_ids() -> None:
    fleet = a_fleet()

    async def scene() -> None:
        ids = {}
        for name in ("n1", "n2"):
            node = await fleet.connect(name, 5)
            ids[name] = (await node.images.stage(IMAGE.pin, "linux/amd64", ignore)).id
        assert ids["n1"] != IMAGE.digest
        assert ids["n2"] == IMAGE.digest

    play(fleet, scene)


def test_an_image_without_its_content_is_listed_and_of_no_use() -> None:
    fleet = a_fleet()
    shown = fleet.node("n2").load_image(IMAGE.digest, usable=False)

    async def scene() -> None:
        node = await fleet.connect("n2", 5)
        assert (await node.observer.observe()).images == (shown,)
        assert await node.images.present(IMAGE.pin) is None
        with pytest.raises(NodeError) as missing:
            await node.containers.create("head", head(), shown.id, {}, {})
        assert missing.value.kind is ErrorKind.NOT_FOUND

    play(fleet, scene)


def test_a_classic_store_that_got_an_image_by_save_and_load_does_not_know_its_digest() -> None:
    fleet = a_fleet()
    fleet.node("n1").load_image(IMAGE.digest, attached=False)
    fleet.node("n2").load_image(IMAGE.digest, attached=False)
    assert fleet.node("n1").facts().image_for(IMAGE.pin) is None
    assert fleet.node("n2").facts().image_for(IMAGE.pin) is not None


def test_a_local_build_is_pinned_by_its_id_and_cannot_be_had_elsewhere() -> None:
    digest = "sha256:" + "b" * 64
    local = SimImage(digest, digest, is_local=True)
    fleet = SimulatedFleet(sim_nodes(2), [local])
    fleet.node("n1").load_image(digest)
    assert local.pin == ImagePin(digest, digest, "id")

    async def scene() -> None:
        first, second = await fleet.connect("n1", 5), await fleet.connect("n2", 5)
        assert (await first.images.stage(local.pin, "linux/amd64", ignore)).id == digest
        with pytest.raises(NodeError) as missing:
            await second.images.stage(local.pin, "linux/amd64", ignore)
        assert missing.value.kind is ErrorKind.NOT_FOUND

    play(fleet, scene)


def test_foreign_containers_and_programs_take_ports_and_are_seen() -> None:
    fleet = a_fleet()
    webui = fleet.add_foreign("n1", "open-webui", ports=(8080,), gpus=1)
    fleet.node("n1").listen(80, "nginx")
    facts = fleet.node("n1").facts()
    assert [(item.port, item.process, item.container_id) for item in facts.listeners] == [
        (80, "nginx", None),
        (8080, "engine", webui),
    ]
    found = facts.container("open-webui")
    assert found is not None
    assert (found.owner, found.env, found.gpus, found.state) == (None, (), 1, "running")


def test_a_mount_of_a_folder_that_is_not_there_is_refused() -> None:
    fleet = a_fleet()
    fleet.node("n1").missing_paths.add("/srv/models")
    spec = ContainerSpec(IMAGE.pin, ("x",), mounts=(Mount("/srv/models", "/models"),))

    async def scene() -> None:
        node = await fleet.connect("n1", 5)
        with pytest.raises(NodeError) as refused:
            await boot(node, "head", spec)
        assert refused.value.kind is ErrorKind.REFUSED

    play(fleet, scene)


def test_more_gpus_than_the_node_has_are_refused_at_the_start() -> None:
    fleet = a_fleet()

    async def scene() -> None:
        node = await fleet.connect("n1", 5)
        with pytest.raises(NodeError):
            await boot(node, "head", ContainerSpec(IMAGE.pin, ("x",), gpus=2))
        found = await node.containers.inspect("head")
        assert found is not None
        assert (found.state, bool(found.error)) == ("created", True)

    play(fleet, scene)


def an_owner(lane: str, revision: int = 1) -> Owner:
    return Owner("lab", lane, "pair", 0, 1, "f", revision, "o", "p", "i")


def happened(at_s: float, what: str, name: str, owner: Owner | None, gpus: int = 0, node: str = "n1") -> Happening:
    assert what in {"started", "exited"}
    return Happening(at_s, node, "started" if what == "started" else "exited", name, name, owner, gpus)


def test_spans_are_open_while_a_container_runs() -> None:
    story = [happened(1, "started", "a", None), happened(3, "exited", "a", None), happened(5, "started", "a", None)]
    assert [(span.from_s, span.until_s) for span in spans(story)] == [(1, 3), (5, inf)]


@pytest.mark.parametrize(
    ("first", "second", "gpus", "expected"),
    [
        (an_owner("a"), an_owner("b"), 0, 1),
        (an_owner("a"), an_owner("a"), 0, 0),
        (an_owner("a"), an_owner("a", 2), 0, 1),
        (an_owner("a"), None, 0, 0),
        (an_owner("a"), None, 1, 1),
    ],
)
def test_overlaps_are_of_other_gangs_other_revisions_or_gpus(
    first: Owner, second: Owner | None, gpus: int, expected: int
) -> None:
    story = [
        happened(1, "started", "x", first, gpus),
        happened(2, "started", "y", second, gpus),
        happened(3, "exited", "x", first, gpus),
    ]
    assert len(overlaps(story)) == expected
    apart = [story[0], story[2], happened(3, "started", "y", second, gpus)]
    assert overlaps(apart) == ()


def test_overlaps_on_different_nodes_are_none() -> None:
    story = [
        happened(1, "started", "x", an_owner("a")),
        happened(1, "started", "y", an_owner("b"), node="n2"),
    ]
    assert overlaps(story) == ()


def test_history_tells_a_containers_story() -> None:
    fleet = a_fleet()

    async def scene() -> None:
        node = await fleet.connect("n1", 5)
        await boot(node, identity.unproved_name("head"), head())
        await node.containers.rename("head.unproved", "head")
        await node.containers.stop("head", 5)
        await node.containers.remove("head")

    play(fleet, scene)
    story = [(item.what, item.name) for item in fleet.history("n1") if item.what != "image"]
    assert story == [
        ("created", "head.unproved"),
        ("started", "head.unproved"),
        ("renamed", "head"),
        ("exited", "head"),
        ("removed", "head"),
    ]
    assert fleet.history("n2") == ()
