"""From an image's documents to its content, and everything in them that is not believed."""

from collections.abc import Callable

import pytest

from reconciler.core.lock import LockedImage, LockedLayer, LockedPlatform
from reconciler.images.documents import LARGEST_DOCUMENT, OCI_MANIFEST, locked_image
from reconciler.images.errors import SupplyError, SupplyErrorKind
from tests.unit.images.pictures import Picture, layer_tar, one_platform, sha, two_platforms


def test_a_single_manifest() -> None:
    picture = one_platform()
    manifest = picture.json(picture.top)
    config, blobs = manifest["config"], manifest["layers"]
    layers = tuple(
        LockedLayer(blob["digest"], blob["size"], sha(raw)) for blob, raw in zip(blobs, picture.raw, strict=True)
    )
    size = len(picture.blobs[picture.top])
    platform = LockedPlatform("linux/arm64", picture.top, size, config["digest"], config["size"], layers)
    assert LockedImage("org/x:v1", picture.top, "digest", (platform,), size) == locked_image(
        "org/x:v1", picture.top, picture.read
    )


def test_an_index_has_a_platform_for_each_image_and_none_for_attestations() -> None:
    picture = two_platforms()
    image = locked_image("x", picture.top, picture.read)
    assert ["linux/amd64", "linux/arm64"] == [item.platform for item in image.platforms]
    assert len(picture.blobs[picture.top]) == image.size_bytes
    assert sha(layer_tar("amd")) == image.platforms[0].layers[1].diff_id


def test_an_attestation_may_also_be_known_by_its_annotation() -> None:
    picture = one_platform()
    entry = picture.descriptor(picture.top, OCI_MANIFEST)
    other = {**entry, "annotations": {"vnd.docker.reference.type": "attestation-manifest"}, "digest": "no digest"}
    top = picture.add({"schemaVersion": 2, "manifests": [other, entry]})
    assert ["linux/arm64"] == [item.platform for item in locked_image("x", top, picture.read).platforms]


def test_of_two_manifests_for_one_platform_the_first_counts() -> None:
    picture = Picture()
    first = picture.manifest("linux/arm64", [layer_tar("first")])
    second = picture.manifest("linux/arm64", [layer_tar("second")])
    top = picture.index((first, "linux/arm64"), (second, "linux/arm64"))
    assert [first] == [item.manifest for item in locked_image("x", top, picture.read).platforms]


def test_the_config_says_the_platform_whatever_the_index_promises() -> None:
    picture = one_platform("linux/amd64")
    top = picture.index((picture.top, "linux/arm64"))
    assert ["linux/amd64"] == [item.platform for item in locked_image("x", top, picture.read).platforms]


def test_platforms_that_are_not_there_are_left_out() -> None:
    picture = two_platforms()
    arm, amd = (entry["digest"] for entry in picture.json(picture.top)["manifests"][:2])
    del picture.blobs[amd]
    assert [arm] == [item.manifest for item in locked_image("x", picture.top, picture.read).platforms]
    del picture.blobs[arm]
    with pytest.raises(SupplyError) as told:
        locked_image("x", picture.top, picture.read)
    assert SupplyErrorKind.NOT_FOUND is told.value.kind


def changed(**fields: object) -> Callable[[], Picture]:
    def make() -> Picture:
        picture = Picture()
        picture.manifest("linux/arm64", [layer_tar("a")], changed=fields)
        return picture

    return make


def without_a_layer() -> Picture:
    picture = one_platform()
    content = picture.json(picture.top)
    picture.top = picture.add({**content, "layers": content["layers"][:1]})
    return picture


def with_another_size() -> Picture:
    picture = one_platform()
    content = picture.json(picture.top)
    content["config"]["size"] -= 1
    picture.top = picture.add(content)
    return picture


def of_other_bytes() -> Picture:
    picture = one_platform()
    picture.blobs[picture.top] += b" "
    return picture


def with_a_strange_diff_id() -> Picture:
    picture = one_platform(layers=1)
    content = picture.json(picture.top)
    config = picture.add({"os": "linux", "architecture": "arm64", "rootfs": {"diff_ids": ["md5:0"]}})
    picture.top = picture.add({**content, "config": picture.descriptor(config)})
    return picture


def a_chart() -> Picture:
    picture = one_platform()
    config = picture.add({"name": "chart"})
    picture.top = picture.add({**picture.json(picture.top), "config": picture.descriptor(config)})
    return picture


def of_text(data: bytes) -> Callable[[], Picture]:
    def make() -> Picture:
        picture = Picture()
        picture.top = picture.add(data)
        return picture

    return make


DAMAGED, REFUSED = SupplyErrorKind.DAMAGED, SupplyErrorKind.REFUSED


@pytest.mark.parametrize(
    ("make", "kind", "said"),
    [
        (of_other_bytes, DAMAGED, "something else"),
        (without_a_layer, DAMAGED, "has 1 layers, but its config 2"),
        (with_another_size, DAMAGED, "where its parent says"),
        (with_a_strange_diff_id, DAMAGED, "diff id"),
        (changed(config=None), DAMAGED, "without a sha256 digest"),
        (changed(layers=None), DAMAGED, "no list of layers"),
        (changed(layers=[{"digest": "sha256:" + "a" * 64}]), DAMAGED, "does not say the size"),
        (changed(layers=[{"digest": "sha256:../../etc", "size": 1}]), DAMAGED, "without a sha256 digest"),
        (changed(config={"digest": "sha256:" + "a" * 64, "size": LARGEST_DOCUMENT + 1}), DAMAGED, "no config"),
        (changed(schemaVersion=1), REFUSED, "schema 1"),
        (a_chart, REFUSED, "not an image"),
        (of_text(b"<html>"), DAMAGED, "is not a manifest"),
        (of_text(b"[]"), DAMAGED, "is not a manifest"),
        (of_text(b'{"manifests": {}}'), DAMAGED, "entries of the index"),
        (of_text(b'{"manifests": []}'), REFUSED, "an index without any image"),
    ],
)
def test_what_is_wrong_is_told(make: Callable[[], Picture], kind: SupplyErrorKind, said: str) -> None:
    picture = make()
    with pytest.raises(SupplyError) as told:
        locked_image("x", picture.top, picture.read)
    assert (kind, True) == (told.value.kind, said in told.value.message), told.value.message


def test_a_document_is_asked_for_with_the_size_its_parent_gives() -> None:
    picture = two_platforms()
    asked: dict[str, int] = {}

    def read(digest: str, largest: int) -> bytes:
        asked[digest] = largest
        return picture.read(digest)

    locked_image("x", picture.top, read)
    assert LARGEST_DOCUMENT == asked.pop(picture.top)
    assert {digest: len(picture.blobs[digest]) for digest in asked} == asked
