"""Contract of `protocols.Images` and `protocols.Sources`."""

import asyncio

import pytest

from reconciler.core.desired import ImagePin
from reconciler.core.observed import SourceImage, SourceMissing, SourceUnknown
from reconciler.core.transfer import Relay
from reconciler.nodes.errors import ErrorKind, NodeError
from reconciler.nodes.protocols import Fleet
from tests.contract.subject import Scene, Subject, Told, fleet_scene, scene

LOCAL = ImagePin("sha256:" + "1" * 64, "sha256:" + "1" * 64, "id")


@fleet_scene
async def test_staged_is_present_under_its_digest(fleet: Fleet, subject: Subject) -> None:
    subject.forget_images()
    node = await fleet.connect(subject.name, 10)
    assert await node.images.present(subject.image) is None
    staged = await node.images.stage(subject.image, subject.platform, Told())
    assert staged.usable
    present = await node.images.present(subject.image)
    assert present is not None
    assert present.id == staged.id
    assert subject.image.digest in {present.id, *present.digests}


@fleet_scene
async def test_staging_again_brings_nothing(fleet: Fleet, subject: Subject) -> None:
    node = await fleet.connect(subject.name, 10)
    first = await node.images.stage(subject.image, subject.platform, Told())
    told = Told()
    second = await node.images.stage(subject.image, subject.platform, told)
    assert second.id == first.id
    assert told.steps == []


@fleet_scene
async def test_staging_twice_at_once_is_the_same_image(fleet: Fleet, subject: Subject) -> None:
    subject.forget_images()
    node = await fleet.connect(subject.name, 10)
    stages = (node.images.stage(subject.image, subject.platform, Told()) for _ in range(2))
    first, second = await asyncio.gather(*stages)
    assert first.id == second.id


@fleet_scene
async def test_what_no_source_has_is_not_found(fleet: Fleet, subject: Subject) -> None:
    node = await fleet.connect(subject.name, 10)
    for pin in (subject.missing, LOCAL):
        with pytest.raises(NodeError) as missing:
            await node.images.stage(pin, subject.platform, Told())
        assert missing.value.kind is ErrorKind.NOT_FOUND
        assert await node.images.present(pin) is None


@fleet_scene
async def test_an_image_for_another_platform_is_refused(fleet: Fleet, subject: Subject) -> None:
    node = await fleet.connect(subject.name, 10)
    with pytest.raises(NodeError) as refused:
        await node.images.stage(subject.foreign_image, subject.platform, Told())
    assert refused.value.kind is ErrorKind.REFUSED


@fleet_scene
async def test_the_source_describes_what_it_has(fleet: Fleet, subject: Subject) -> None:
    described = await fleet.sources.describe(subject.image)
    assert isinstance(described, SourceImage)
    assert described.digest == subject.image.digest
    assert dict(described.bytes_by_platform)[subject.platform] > 0


@fleet_scene
async def test_the_source_says_what_it_has_not_and_cannot_know(fleet: Fleet, subject: Subject) -> None:
    assert isinstance(await fleet.sources.describe(subject.missing), SourceMissing)
    assert isinstance(await fleet.sources.describe(LOCAL), SourceUnknown)


@fleet_scene
async def test_the_source_describes_layers_by_their_content(fleet: Fleet, subject: Subject) -> None:
    described = await fleet.sources.describe(subject.image)
    assert isinstance(described, SourceImage)
    assert described.image is not None
    locked = described.image.platform(subject.platform)
    assert locked is not None
    assert locked.compressed_bytes == dict(described.bytes_by_platform)[subject.platform]
    assert described.origin != ""


@fleet_scene
async def test_the_inventory_tells_the_layers_that_the_source_described(fleet: Fleet, subject: Subject) -> None:
    """The same in both stores, whatever the image's id is there."""
    described = await fleet.sources.describe(subject.image)
    assert isinstance(described, SourceImage)
    assert described.image is not None
    locked = described.image.platform(subject.platform)
    assert locked is not None
    node = await fleet.connect(subject.name, 10)
    staged = await node.images.stage(subject.image, subject.platform, Told())
    found = next(image for image in await node.images.inventory() if image.id == staged.id)
    assert found.diff_ids == locked.diff_ids
    assert found.holds(subject.image)
    assert (found.size_bytes or 0) > 0
    assert found.tagged_at[:3] == "202"


@fleet_scene
async def test_the_inventory_lists_what_an_observation_lists(fleet: Fleet, subject: Subject) -> None:
    node = await fleet.connect(subject.name, 10)
    await node.images.stage(subject.image, subject.platform, Told())
    seen = {image.id: image for image in (await node.observer.observe()).images}
    told = {image.id: image for image in await node.images.inventory()}
    assert seen.keys() == told.keys()
    for key, image in told.items():
        assert (seen[key].digests, seen[key].usable, seen[key].complete) == (
            image.digests,
            image.usable,
            image.complete,
        )


@fleet_scene
async def test_only_the_containerd_store_has_all_of_an_image_for_others(fleet: Fleet, subject: Subject) -> None:
    subject.forget_images()
    node = await fleet.connect(subject.name, 10)
    await node.images.stage(subject.image, subject.platform, Told())
    found = await node.images.present(subject.image)
    assert found is not None
    assert found.complete is (subject.store == "containerd")


@fleet_scene
async def test_a_removed_image_is_gone_with_all_its_names(fleet: Fleet, subject: Subject) -> None:
    node = await fleet.connect(subject.name, 10)
    staged = await node.images.stage(subject.image, subject.platform, Told())
    await node.images.remove(staged)
    assert await node.images.present(subject.image) is None
    assert staged.id not in {image.id for image in await node.images.inventory()}
    await node.images.remove(staged)  # what is not there is no trouble
    again = await node.images.stage(subject.image, subject.platform, Told())
    assert again.id == staged.id


@scene
async def test_an_image_that_a_container_uses_stays(play: Scene, subject: Subject) -> None:
    """A stopped container keeps its image, too."""
    await play.create(("true",))
    image = await play.node.images.present(play.image)
    assert image is not None
    with pytest.raises(NodeError) as used:
        await play.node.images.remove(image)
    assert used.value.kind is ErrorKind.CONFLICT
    assert await play.node.images.present(play.image) is not None
    await play.node.containers.remove((await play.found("fleet-tiny-r0-v1")).id)
    await play.node.images.remove(image)
    assert await play.node.images.present(play.image) is None


@fleet_scene
async def test_a_seed_that_is_the_node_itself_stages_as_without(fleet: Fleet, subject: Subject) -> None:
    subject.forget_images()
    node = await fleet.connect(subject.name, 10)
    told = Told()
    relay = Relay(subject.name, subject.address, ("203.0.113.7",))
    staged = await node.images.stage(subject.image, subject.platform, told, relay)
    present = await node.images.present(subject.image)
    assert present is not None
    assert present.id == staged.id
    assert max(step.done_bytes for step in told.steps) > 0


@fleet_scene
async def test_without_the_seed_the_bytes_come_from_the_controller(fleet: Fleet, subject: Subject) -> None:
    """A relay is a help, never a condition: its seed may be gone, or never have been there."""
    subject.forget_images()
    node = await fleet.connect(subject.name, 10)
    relay = Relay("gone", "203.0.113.7", (subject.address,))
    staged = await node.images.stage(subject.image, subject.platform, Told(), relay)
    assert staged.usable
    assert await node.images.present(subject.image) is not None
