"""Contract of `protocols.Images` and `protocols.Sources`."""

import asyncio

import pytest

from reconciler.core.desired import ImagePin
from reconciler.core.observed import SourceImage, SourceMissing, SourceUnknown
from reconciler.nodes.errors import ErrorKind, NodeError
from reconciler.nodes.protocols import Fleet
from tests.contract.subject import Subject, Told, fleet_scene

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
