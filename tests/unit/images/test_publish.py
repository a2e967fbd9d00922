"""Archives of `docker save` on their way into the vault."""

import gzip
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from reconciler.images.documents import locked_image
from reconciler.images.errors import SupplyError, SupplyErrorKind
from reconciler.images.publish import publish
from reconciler.images.vault import Vault
from tests.unit.images.archives import (
    blob_name,
    chunked,
    classic_files,
    config_of,
    containerd_files,
    old_files,
    packed,
    tarred,
)
from tests.unit.images.pictures import Picture, layer_tar, one_platform, sha, two_platforms

NAME = "fleet.invalid/mine:v1"


@pytest.fixture
def vault(tmp_path: Path) -> Vault:
    return Vault(tmp_path / "vault")


def kept(vault: Vault) -> dict[str, bytes]:
    return {digest: vault.read(digest) for digest, _, _ in vault.digests()}


def test_a_containerd_stores_archive_keeps_its_bytes_and_its_digest(vault: Vault) -> None:
    picture = one_platform()
    image = publish(chunked(tarred(containerd_files(picture))), picture.top, NAME, vault)
    assert locked_image(NAME, picture.top, picture.read) == image
    assert picture.blobs == kept(vault)


def test_an_index_with_all_its_platforms_stays_the_digest(vault: Vault) -> None:
    picture = two_platforms()
    image = publish(chunked(tarred(containerd_files(picture))), picture.top, NAME, vault)
    assert (picture.top, 2) == (image.digest, len(image.platforms))


def test_an_index_that_lacks_a_platform_gives_way_to_the_manifest_that_is_there(vault: Vault) -> None:
    picture = two_platforms()
    arm, amd = (entry["digest"] for entry in picture.json(picture.top)["manifests"][:2])
    for lacking in (amd, picture.json(amd)["layers"][1]["digest"]):
        archive = tarred(containerd_files(picture, without=(lacking,)))
        image = publish(chunked(archive), picture.top, NAME, vault)
        assert arm == image.digest
        assert vault.has(arm)
        assert not vault.has(picture.top)


def test_uncompressed_layers_of_a_containerd_store_are_kept_as_they_are(vault: Vault) -> None:
    picture = Picture()
    picture.manifest("linux/arm64", [layer_tar("a"), layer_tar("b")], compress=False)
    image = publish(chunked(tarred(containerd_files(picture))), picture.top, NAME, vault)
    assert picture.top == image.digest
    assert all(vault.read(digest) == data for digest, data in picture.blobs.items())


@pytest.mark.parametrize("files_of", [classic_files, old_files])
def test_a_classic_stores_archive_gets_a_manifest_over_compressed_layers(
    vault: Vault, files_of: Callable[[Picture], dict[str, bytes | str]]
) -> None:
    picture = one_platform(layers=3)
    config, _ = config_of(picture)
    image = publish(chunked(tarred(files_of(picture))), config, NAME, vault)
    (platform,) = image.platforms
    assert ("linux/arm64", config, image.digest) == (platform.platform, platform.config, platform.manifest)
    assert tuple(map(sha, picture.raw)) == platform.diff_ids
    assert picture.raw == [gzip.decompress(vault.read(layer.digest)) for layer in platform.layers]
    assert all(layer.size_bytes == vault.size(layer.digest) for layer in platform.layers)
    assert image == locked_image(NAME, image.digest, lambda digest, _: vault.read(digest))


def test_the_same_image_gets_the_same_digest_each_time_and_from_each_docker(vault: Vault, tmp_path: Path) -> None:
    picture = one_platform()
    config, _ = config_of(picture)
    first = publish(chunked(tarred(classic_files(picture))), config, NAME, vault)
    again = publish(chunked(tarred(classic_files(picture)), 7), config, NAME, vault)
    old = publish(chunked(tarred(old_files(picture))), config, NAME, Vault(tmp_path / "other"))
    assert first == again == old


def test_a_layer_that_comes_twice_is_a_link_in_old_archives(vault: Vault) -> None:
    picture = Picture()
    picture.manifest("linux/arm64", [layer_tar("a"), layer_tar("b"), layer_tar("a")])
    config, _ = config_of(picture)
    image = publish(chunked(tarred(old_files(picture))), config, NAME, vault)
    layers = image.platforms[0].layers
    assert (layers[0], 2) == (layers[2], len(set(layers)))


def test_a_big_layer_is_the_same_bytes_however_it_comes(vault: Vault, tmp_path: Path) -> None:
    picture = Picture()
    picture.manifest("linux/arm64", [layer_tar("big", bytes(range(256)) * 4 * 9000)])
    config, _ = config_of(picture)
    archive = tarred(classic_files(picture))
    image = publish(chunked(archive, 100_000), config, NAME, vault)
    assert image == publish(chunked(archive, 1 << 22), config, NAME, Vault(tmp_path / "other"))
    assert picture.raw == [gzip.decompress(vault.read(layer.digest)) for layer in image.platforms[0].layers]


def test_a_layer_of_several_gzip_members_is_unpacked_whole(vault: Vault) -> None:
    raw = layer_tar("a", b"x" * 5000)
    picture = Picture()
    blob = picture.add(gzip.compress(raw[:3000]) + gzip.compress(raw[3000:]))
    config = picture.add({"os": "linux", "architecture": "arm64", "rootfs": {"diff_ids": [sha(raw)]}})
    content = {"schemaVersion": 2, "config": picture.descriptor(config), "layers": [picture.descriptor(blob)]}
    picture.top = picture.add(content)
    assert picture.top == publish(chunked(tarred(containerd_files(picture))), picture.top, NAME, vault).digest


@pytest.mark.parametrize("share", [0.0, 0.001, 0.2, 0.5, 0.8])
@pytest.mark.parametrize("is_classic", [True, False])
def test_a_cut_archive_is_damaged_and_leaves_nothing_that_counts(vault: Vault, share: float, is_classic: bool) -> None:
    picture = Picture()
    picture.manifest("linux/arm64", [layer_tar(str(number), bytes(range(256)) * 40) for number in range(4)])
    config, _ = config_of(picture)
    data = tarred(classic_files(picture) if is_classic else containerd_files(picture))
    with pytest.raises(SupplyError) as told:
        publish(chunked(data[: int(len(data) * share)]), config if is_classic else picture.top, NAME, vault)
    assert SupplyErrorKind.DAMAGED is told.value.kind
    assert not vault.has(picture.top)
    assert all(not data.startswith(b"{") for data in kept(vault).values())
    assert vault.roots() == {}


def test_every_flipped_bit_is_found(tmp_path: Path) -> None:
    picture = one_platform(layers=1)
    files = containerd_files(picture)
    for digest in picture.blobs:
        data = picture.blobs[digest]
        for place in (0, len(data) // 2, len(data) - 1):
            wrong = data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]
            with pytest.raises(SupplyError) as told:
                publish(chunked(tarred({**files, blob_name(digest): wrong})), picture.top, NAME, Vault(tmp_path))
            assert SupplyErrorKind.DAMAGED is told.value.kind


def with_another_layer(picture: Picture) -> dict[str, bytes | str]:
    return {**old_files(picture), f"{0:064x}/layer.tar": layer_tar("other")}


def without_a_layer(picture: Picture) -> dict[str, bytes | str]:
    files = old_files(picture)
    del files[f"{1:064x}/layer.tar"]
    return files


def with_links_in_a_circle(picture: Picture) -> dict[str, bytes | str]:
    name = f"{0:064x}/layer.tar"
    return {**old_files(picture), name: f"../{0:064x}/layer.tar"}


def of_two_images(picture: Picture) -> dict[str, bytes | str]:
    return {**old_files(picture), "manifest.json": packed([{}, {}])}


def of_text(picture: Picture) -> dict[str, bytes | str]:
    return {**old_files(picture), "manifest.json": b"{"}


@pytest.mark.parametrize(
    "files_of", [with_another_layer, without_a_layer, with_links_in_a_circle, of_two_images, of_text, lambda _: {}]
)
def test_what_does_not_belong_together_is_damaged(
    vault: Vault, files_of: Callable[[Picture], dict[str, bytes | str]]
) -> None:
    picture = one_platform()
    with pytest.raises(SupplyError) as told:
        publish(chunked(tarred(files_of(picture))), config_of(picture)[0], NAME, vault)
    assert SupplyErrorKind.DAMAGED is told.value.kind
    assert told.value.hint


def test_another_image_than_asked_for_is_damaged(vault: Vault) -> None:
    with pytest.raises(SupplyError, match="it is of the image"):
        publish(chunked(tarred(old_files(one_platform()))), "sha256:" + "0" * 64, NAME, vault)


def test_what_the_sender_says_at_the_end_is_heard(vault: Vault) -> None:
    picture = one_platform()

    def sent() -> Iterator[bytes]:
        yield from chunked(tarred(containerd_files(picture)))
        raise SupplyError(SupplyErrorKind.NO_ANSWER, "the node broke off")

    with pytest.raises(SupplyError, match="broke off"):
        publish(sent(), picture.top, NAME, vault)
    assert not vault.has(picture.top)


def test_nothing_is_left_beside_blobs(vault: Vault) -> None:
    picture = one_platform()
    publish(chunked(tarred(old_files(picture))), config_of(picture)[0], NAME, vault)
    assert {"blobs", "oci-layout"} == {path.name for path in vault.folder.iterdir()}
    assert [] == list(vault.parts())
