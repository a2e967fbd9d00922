"""Images of the simulation: layers, stores, links; what real daemons do, in small."""

import asyncio

import pytest

from reconciler.core.transfer import Relay
from reconciler.nodes.errors import ErrorKind, NodeError
from reconciler.testing import SimImage, SimNode, SimulatedFleet, sim_nodes
from tests.unit.testing.samples import IMAGE, a_fleet, boot, head, ignore, play

AMD64 = "linux/amd64"
NEXT = IMAGE.rebuilt()
SAME = IMAGE.under("mirror.lan/llama")
SIZE = 10**9


def classic(fleet: SimulatedFleet) -> SimNode:
    return fleet.node("n1")


def containerd(fleet: SimulatedFleet) -> SimNode:
    return fleet.node("n2")


def test_layers_make_up_the_whole_image_and_are_the_same_every_time() -> None:
    layers = IMAGE.layers_for(AMD64)
    assert SIZE == sum(layer.size_bytes for layer in layers)
    assert layers == SimImage.named("ghcr.io/acme/llama").layers_for(AMD64)
    assert set(layers).isdisjoint(IMAGE.layers_for("linux/arm64"))


def test_the_next_build_shares_all_but_one_layer() -> None:
    assert IMAGE.layers_for(AMD64)[:-1] == NEXT.layers_for(AMD64)[:-1]
    assert IMAGE.layers_for(AMD64)[-1] != NEXT.layers_for(AMD64)[-1]
    assert NEXT.digest not in {IMAGE.digest, NEXT.rebuilt().digest}
    assert IMAGE.config_for(AMD64) != NEXT.config_for(AMD64)


def test_a_layer_is_nothing_without_those_below_it() -> None:
    fleet = a_fleet(2, 7, other := IMAGE.rebuilt("base", layer=0))
    for node in fleet.nodes:
        node.load_image(IMAGE.digest)
        assert other.layers_for(AMD64) == node.store.fetch(other).download


def test_the_same_content_has_one_id_in_the_classic_store_and_two_in_the_other() -> None:
    fleet = a_fleet(2, 7, SAME)
    for node in fleet.nodes:
        node.load_image(IMAGE.digest)
        node.load_image(SAME.digest)
    assert [(IMAGE.digest, SAME.digest)] == [image.digests for image in classic(fleet).inventory()]
    assert {IMAGE.digest, SAME.digest} == {image.id for image in containerd(fleet).inventory()}
    ids = {image.diff_ids for node in fleet.nodes for image in node.inventory()}
    assert {IMAGE.locked.platforms[0].diff_ids} == ids


def test_the_classic_store_fetches_again_what_came_by_load() -> None:
    fleet = a_fleet(2, 7, NEXT)
    for node in fleet.nodes:
        node.load_image(IMAGE.digest, attached=False)
    assert 5 == len(classic(fleet).store.fetch(NEXT).download)
    assert 1 == len(containerd(fleet).store.fetch(NEXT).download)


def test_prune_takes_what_has_no_name_from_the_classic_store_alone() -> None:
    fleet = a_fleet(2, 7, NEXT)
    for node in fleet.nodes:
        node.load_image(IMAGE.digest, attached=False)
        node.load_image(NEXT.digest)
        node.prune_images()
    assert [1, 2] == [len(node.inventory()) for node in fleet.nodes]
    for node in fleet.nodes:
        node.prune_images(everything=True)
        assert () == node.inventory()


def test_prune_leaves_what_a_container_uses_and_so_does_removal() -> None:
    fleet = a_fleet()

    async def scene() -> None:
        node = await fleet.connect("n1", 5)
        await boot(node, "head", head())
        fleet.node("n1").prune_images(everything=True)
        (image,) = await node.images.inventory()
        with pytest.raises(NodeError) as used:
            await node.images.remove(image)
        assert used.value.kind is ErrorKind.CONFLICT
        await node.containers.stop("head", 5)
        await node.containers.remove("head")
        await node.images.remove(image)
        assert await node.images.inventory() == ()

    play(fleet, scene)
    assert "remove-image" in {call.operation for call in fleet.mutations}


def test_a_deleted_layer_makes_an_image_unusable_until_it_is_brought_again() -> None:
    fleet = a_fleet()
    for node in fleet.nodes:
        node.load_image(IMAGE.digest)
        node.delete_layer(IMAGE.digest, 3)
        (shown,) = node.facts().images
        assert (shown.usable, shown.complete) == (False, False)
        assert IMAGE.layers_for(AMD64)[3:] == node.store.fetch(IMAGE).download
        node.load_image(IMAGE.digest)
        assert node.facts().image_for(IMAGE.pin) is not None


def stage_all(fleet: SimulatedFleet, relay: Relay | None) -> None:
    async def one(name: str) -> None:
        node = await fleet.connect(name, 5)
        await node.images.stage(IMAGE.pin, AMD64, ignore, relay)

    async def scene() -> None:
        await asyncio.gather(*(one(node.name) for node in fleet.nodes))

    play(fleet, scene)


def relay_of(fleet: SimulatedFleet, seed: str, *peers: str) -> Relay:
    addresses = {node.name: node.config.address for node in fleet.nodes}
    return Relay(seed, addresses[seed], tuple(addresses[peer] for peer in peers))


def test_relayed_bytes_leave_the_controller_once_and_are_counted_by_link() -> None:
    fleet = a_fleet(3)
    stage_all(fleet, relay_of(fleet, "n1", "n2", "n3"))
    assert SIZE == fleet.sent_bytes
    assert {"n1": 2 * SIZE} == dict(fleet.traffic.relayed)
    assert {"n1": SIZE, "n2": SIZE, "n3": SIZE} == dict(fleet.traffic.received)


def test_a_seed_serves_only_whom_it_was_meant_for() -> None:
    fleet = a_fleet(3)
    stage_all(fleet, relay_of(fleet, "n1", "n2"))
    assert 2 * SIZE == fleet.sent_bytes
    assert {"n1": SIZE} == dict(fleet.traffic.relayed)


def test_what_a_seed_passed_on_is_not_kept_for_later() -> None:
    fleet = SimulatedFleet(sim_nodes(3), [IMAGE])
    relay = relay_of(fleet, "n1", "n2", "n3")
    stage_all(fleet, relay)
    for node in fleet.nodes:
        node.remove_image(IMAGE.digest)
    stage_all(fleet, relay)
    assert 2 * SIZE == fleet.sent_bytes


def test_the_disk_pays_by_store() -> None:
    fleet = a_fleet()
    before = classic(fleet).free_bytes
    stage_all(fleet, None)
    assert before - 2 * SIZE == classic(fleet).free_bytes
    assert before - 3 * SIZE == containerd(fleet).free_bytes
