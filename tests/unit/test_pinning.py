"""From names to pins, as a library: what registries and nodes say, and what the lock gets of it."""

import asyncio
from collections.abc import AsyncGenerator, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from reconciler.core.lock import Lock, LockedImage, LockedLayer, LockedPlatform
from reconciler.core.observed import LocalImage
from reconciler.images import upstream
from reconciler.images.documents import locked_image
from reconciler.images.errors import SupplyError, SupplyErrorKind
from reconciler.images.supply import Supply
from reconciler.images.vault import Vault
from reconciler.nodes.errors import NodeError
from reconciler.pinning import ImageName, Pinned, Pinner, by_tag, merged, only
from reconciler.threads import with_chunks
from tests.unit.images.archives import classic_files, config_of, containerd_files, tarred
from tests.unit.images.pictures import Picture, one_platform, two_platforms
from tests.unit.images.played_nodes import PlayedStore, fleet_of
from tests.unit.images.played_registry import PlayedRegistry, served


@pytest.fixture(autouse=True)
def _hurry(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(upstream, "PAUSES_S", ())
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))


@pytest.fixture
def played() -> Iterator[PlayedRegistry]:
    with served(PlayedRegistry()) as found:
        yield found


def pinner(tmp_path: Path, url: str = "http://127.0.0.1:1", store: PlayedStore | None = None) -> Pinner:
    vault = Vault(tmp_path / "vault")
    supply = Supply(vault, {"ghcr.io": url, "docker.io": url}, owner="lab")
    return Pinner(supply, vault, fleet_of(store) if store else None)


# registries


async def test_a_tag_becomes_the_digest_its_registry_has_now(played: PlayedRegistry, tmp_path: Path) -> None:
    picture = two_platforms()
    played.add(picture, "v1")
    image = locked_image("ghcr.io/org/x:v1", picture.top, picture.read)
    expected = Pinned(f"ghcr.io/org/x:v1@{picture.top}", image, played.url)
    assert expected == await pinner(tmp_path, played.url).from_registry("ghcr.io/org/x:v1")


async def test_a_name_without_a_tag_is_latest_and_stays_as_it_is_written(
    played: PlayedRegistry, tmp_path: Path
) -> None:
    picture = one_platform()
    played.add(picture, "latest")
    found = await pinner(tmp_path, played.url).from_registry("redis")
    assert f"redis@{picture.top}" == found.reference
    assert f"/v2/library/redis/manifests/{picture.top}" in played.paths()


async def test_a_digest_that_is_written_stays(played: PlayedRegistry, tmp_path: Path) -> None:
    picture, newer = one_platform(), one_platform(layers=3)
    played.add(picture)
    played.add(newer, "v1")
    written = f"ghcr.io/org/x:v1@{picture.top}"
    found = await pinner(tmp_path, played.url).from_registry(written)
    assert (written, picture.top) == (found.reference, found.image and found.image.digest)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("ghcr.io/org/x:v2", SupplyErrorKind.NOT_FOUND),
        ("ghcr.io/Org/x", SupplyErrorKind.REFUSED),
        ("sha256:" + "a" * 64, SupplyErrorKind.REFUSED),
        ("fleet.invalid/x:v1", SupplyErrorKind.NOT_FOUND),
    ],
)
async def test_what_cannot_be_pinned_is_told_with_the_next_step(
    played: PlayedRegistry, tmp_path: Path, text: str, kind: SupplyErrorKind
) -> None:
    with pytest.raises(SupplyError) as told:
        await pinner(tmp_path, played.url).from_registry(text)
    assert kind is told.value.kind
    assert text.startswith("ghcr.io/Org") or "--from NODE" in told.value.hint


# nodes


def image_of(picture: Picture, *names: str, store: str = "classic", digests: tuple[str, ...] = ()) -> LocalImage:
    config, _ = config_of(picture)
    diff_ids = locked_image("x", picture.top, picture.read).platforms[0].diff_ids
    known = (picture.top, *digests) if store == "containerd" else digests
    image_id = picture.top if store == "containerd" else config
    return LocalImage(image_id, known, names, complete=store == "containerd", diff_ids=diff_ids, size_bytes=9)


async def test_a_node_tells_the_digest_and_the_registry_the_content(played: PlayedRegistry, tmp_path: Path) -> None:
    picture = one_platform()
    played.add(picture)
    store = PlayedStore(images_there=(image_of(picture, "ghcr.io/org/x:v1", digests=(picture.top,)),))
    found = await pinner(tmp_path, played.url, store).from_node("ghcr.io/org/x:v1", "dgx1")
    assert (f"ghcr.io/org/x:v1@{picture.top}", f"dgx1, {played.url}", "") == (
        found.reference,
        found.origin,
        found.remark,
    )
    assert found.image is not None


async def test_docker_names_are_short_where_they_can_be(played: PlayedRegistry, tmp_path: Path) -> None:
    picture = one_platform()
    played.add(picture)
    store = PlayedStore(images_there=(image_of(picture, "redis:7", digests=(picture.top,)),))
    found = await pinner(tmp_path, played.url, store).from_node("docker.io/library/redis:7", "dgx1")
    assert f"docker.io/library/redis:7@{picture.top}" == found.reference


@pytest.mark.parametrize("kind", ["classic", "containerd"])
async def test_without_its_registry_a_digest_is_pinned_but_not_locked(tmp_path: Path, kind: str) -> None:
    picture = one_platform()
    image = image_of(picture, "ghcr.io/org/x:v1", store=kind, digests=(picture.top,))
    store = PlayedStore(kind="containerd" if kind == "containerd" else "classic", images_there=(image,))
    found = await pinner(tmp_path, store=store).from_node("ghcr.io/org/x:v1", "dgx1")
    assert (f"ghcr.io/org/x:v1@{picture.top}", None) == (found.reference, found.image)
    assert "fleet.lock gets no entry" in found.remark


async def test_a_local_build_of_a_classic_store_is_pinned_by_its_config(tmp_path: Path) -> None:
    picture = one_platform()
    config, _ = config_of(picture)
    store = PlayedStore(images_there=(image_of(picture, "mine:local"),))
    layers = tuple(LockedLayer("", 0, diff_id) for diff_id in store.images_there[0].diff_ids)
    expected = LockedImage("", config, "id", (LockedPlatform("linux/arm64", "", 0, config, 0, layers),))
    for text in ("mine:local", config):
        found = await pinner(tmp_path, store=store).from_node(text, "dgx1")
        assert (config, expected) == (found.reference, found.image)
        assert "--publish" in found.remark


async def test_a_digest_of_a_containerd_store_that_no_registry_has_is_a_local_builds(
    played: PlayedRegistry, tmp_path: Path
) -> None:
    picture = one_platform()
    store = PlayedStore(kind="containerd", images_there=(image_of(picture, "mine:local", store="containerd"),))
    found = await pinner(tmp_path, played.url, store).from_node("mine:local", "dgx1")
    assert (picture.top, "id") == (found.reference, found.image and found.image.kind)
    assert found.image is not None
    assert "" == found.image.platforms[0].config


async def test_what_the_node_has_not_or_not_whole_is_told(tmp_path: Path) -> None:
    picture = one_platform()
    broken = replace(image_of(picture, "mine:broken", f"other@{picture.top}"), usable=False)
    store = PlayedStore(images_there=(broken,))
    with pytest.raises(SupplyError, match="dgx1 has no image mine:v1"):
        await pinner(tmp_path, store=store).from_node("mine:v1", "dgx1")
    with pytest.raises(SupplyError, match="dgx1 has no image other"):
        await pinner(tmp_path, store=store).from_node("other", "dgx1")
    with pytest.raises(SupplyError, match="its content is not there"):
        await pinner(tmp_path, store=store).from_node("mine:broken", "dgx1")


# publishing


async def test_a_local_build_of_a_classic_store_is_published_under_a_name_that_nobody_can_answer_for(
    tmp_path: Path,
) -> None:
    picture = one_platform()
    config, _ = config_of(picture)
    image = image_of(picture, "mine:local")
    store = PlayedStore(images_there=(image,), archives={config: tarred(classic_files(picture))})
    counts: list[int] = []
    found = await pinner(tmp_path, store=store).published("mine:local", "dgx1", counts.append)
    assert found.image is not None
    assert ("fleet.invalid/mine:local", config) == (found.image.name, found.image.platforms[0].config)
    assert f"fleet.invalid/mine:local@{found.image.digest}" == found.reference
    assert len(store.archives[config]) == counts[-1]
    vault = Vault(tmp_path / "vault")
    assert {"lab": frozenset({found.image.digest})} == vault.roots()
    supply = Supply(vault, {})
    told = await supply.describe(ImageName.parse(found.reference).pin(found.image.digest))
    assert "the vault" == getattr(told, "origin", told)


@pytest.mark.parametrize(
    ("name", "published"),
    [("ghcr.io/org/x:v1", "ghcr.io/org/x:v1"), ("mine:local", "fleet.invalid/mine:local")],
)
async def test_a_containerd_store_keeps_digest_and_a_registrys_name(tmp_path: Path, name: str, published: str) -> None:
    picture = one_platform()
    image = image_of(picture, f"x@{picture.top}", name, store="containerd")
    archives = {picture.top: tarred(containerd_files(picture))}
    store = PlayedStore(kind="containerd", images_there=(image,), archives=archives)
    for text in (name, picture.top):
        found = await pinner(tmp_path, store=store).published(text, "dgx1")
        assert f"{published}@{picture.top}" == found.reference


async def test_an_incomplete_image_is_not_published(tmp_path: Path) -> None:
    image = replace(image_of(one_platform(), "mine:v1", store="containerd"), complete=False)
    with pytest.raises(SupplyError, match="does not have all its bytes"):
        await pinner(tmp_path, store=PlayedStore(kind="containerd", images_there=(image,))).published("mine:v1", "dgx1")


async def test_a_node_that_breaks_off_is_told_as_such_and_publishes_nothing(tmp_path: Path) -> None:
    picture = one_platform()
    config, _ = config_of(picture)
    archive = tarred(classic_files(picture))
    for share in (1.0, 0.5):
        cut = archive[: int(len(archive) * share)]
        store = PlayedStore(images_there=(image_of(picture, "mine:v1"),), archives={config: cut}, breaks=True)
        with pytest.raises(NodeError, match="broke off"):
            await pinner(tmp_path, store=store).published("mine:v1", "dgx1")
    assert {} == Vault(tmp_path / "vault").roots()


async def test_a_short_archive_is_asked_for_once_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    picture = one_platform()
    whole = tarred(classic_files(picture))
    store = PlayedStore(images_there=(image_of(picture, "mine:v1"),))
    given: list[bytes] = [whole[: len(whole) // 2], whole]

    async def export(reference: str) -> AsyncGenerator[bytes, None]:
        yield given.pop(0)

    monkeypatch.setattr(store, "export", export)
    found = await pinner(tmp_path, store=store).published("mine:v1", "dgx1")
    assert found.reference.startswith("fleet.invalid/mine:v1@")
    given += [whole[: len(whole) // 2]] * 2
    with pytest.raises(SupplyError, match="mine:v1 of dgx1 cannot be published: the archive cannot be used"):
        await pinner(tmp_path, store=store).published("mine:v1", "dgx1")
    assert [] == given


async def test_what_was_published_is_found_again_on_the_node_that_built_it(tmp_path: Path) -> None:
    picture = one_platform()
    config, _ = config_of(picture)
    image = image_of(picture, "other:name")
    store = PlayedStore(images_there=(image,), archives={config: tarred(classic_files(picture))})
    first = await pinner(tmp_path, store=store).published("other:name", "dgx1")
    assert first.image is not None
    vault = Vault(tmp_path / "new")
    later = Pinner(Supply(vault, {}, Lock((first.image,))), vault, fleet_of(store))
    assert first.reference == (await later.published(first.reference, "dgx1")).reference
    assert {"fleet": frozenset({first.image.digest})} == vault.roots()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"ghcr.io:443/x:v1@sha256:{'a' * 64}", "ghcr.io:443/x:v1"),
        (f"ghcr.io:443/x@sha256:{'a' * 64}", f"ghcr.io:443/x@sha256:{'a' * 64}"),
        (f"sha256:{'a' * 64}", f"sha256:{'a' * 64}"),
        ("redis:7", "redis:7"),
    ],
)
def test_without_its_digest_a_reference_is_asked_for_by_its_tag_if_it_has_one(text: str, expected: str) -> None:
    assert expected == by_tag(text)


async def test_a_publisher_that_is_cancelled_ends_the_archive() -> None:
    ended = asyncio.Event()

    async def endless() -> AsyncGenerator[bytes, None]:
        try:
            yield b"first"
            await asyncio.sleep(3600)
        finally:
            ended.set()

    task = asyncio.create_task(with_chunks(endless(), b"".join))
    await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended.is_set()


# the lock

A, B, C = (f"sha256:{letter * 64}" for letter in "abc")


def image(name: str, digest: str) -> LockedImage:
    return LockedImage(name, digest, "digest", ())


def test_a_new_digest_takes_the_place_of_the_one_of_its_name_unless_a_lane_has_that() -> None:
    lock = Lock((image("x:v1", A), image("y:v1", B), LockedImage("", C, "id", ())))
    fresh = image("x:v1", "sha256:" + "d" * 64)
    assert {"y:v1", "", "x:v1"} == {item.name for item in merged(lock, [fresh], set()).images}
    assert lock.images[0] not in merged(lock, [fresh], set()).images
    assert lock.images[0] in merged(lock, [fresh], {A}).images


def test_what_is_pinned_again_stands_once() -> None:
    lock = Lock((image("x:v1", A), LockedImage("", C, "id", ())))
    again = replace(lock.images[1], platforms=())
    assert Lock((lock.images[0], again)) == merged(lock, [again], set())


def test_what_nobody_has_is_forgotten() -> None:
    lock = Lock((image("x:v1", A), image("y:v1", B)))
    assert Lock((image("y:v1", B),)) == only(lock, {B})
