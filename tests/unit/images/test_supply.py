"""What the controller knows of images and where it gets their bytes."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from reconciler.core.desired import ImagePin
from reconciler.core.lock import PUBLISHED, Lock
from reconciler.core.observed import SourceImage, SourceMissing, SourceUnknown
from reconciler.images import upstream
from reconciler.images.documents import locked_image
from reconciler.images.errors import SupplyError, SupplyErrorKind
from reconciler.images.supply import Supply
from reconciler.images.vault import Vault
from tests.unit.images.pictures import Picture, one_platform, two_platforms
from tests.unit.images.played_registry import PlayedRegistry, served


@pytest.fixture(autouse=True)
def _hurry(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(upstream, "PAUSES_S", ())
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))


@pytest.fixture
def played() -> Iterator[PlayedRegistry]:
    with served(PlayedRegistry()) as found:
        yield found


@pytest.fixture
def vault(tmp_path: Path) -> Vault:
    return Vault(tmp_path / "vault")


def pin_of(picture: Picture, registry: str) -> ImagePin:
    return ImagePin(f"{registry}/org/x:v1@{picture.top}", picture.top, "digest", registry, "org/x")


def documents(picture: Picture) -> set[str]:
    return {digest for digest, data in picture.blobs.items() if data.startswith(b"{")}


@dataclass
class PlayedNode:
    """A node's content store. `breaks_at`: bytes after which it fails."""

    blobs: dict[str, bytes]
    breaks_at: int | None = None
    asked: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        return "node dgx1"

    def document(self, repository: str, digest: str) -> bytes:
        self.asked.append(digest)
        return Picture(self.blobs).read(digest)

    @contextmanager
    def blob(self, repository: str, digest: str, offset: int = 0) -> Iterator[Iterator[bytes]]:
        self.asked.append(digest)
        yield self.chunks(self.blobs[digest][offset:])

    def chunks(self, data: bytes) -> Iterator[bytes]:
        if self.breaks_at != 0:
            yield data[: self.breaks_at]
        if self.breaks_at is not None:
            raise SupplyError(SupplyErrorKind.NO_ANSWER, "the node went away")


def fetched(supply: Supply, digest: str, offset: int = 0) -> bytes:
    with supply.fetch(digest, offset) as chunks:
        return b"".join(chunks)


async def test_a_locked_image_is_described_without_any_network_or_disk(vault: Vault) -> None:
    picture = two_platforms()
    image = locked_image("unreachable.invalid/org/x:v1", picture.top, picture.read)
    supply = Supply(vault, {}, Lock((image,)))
    told = await supply.describe(pin_of(picture, "unreachable.invalid"))
    sizes = tuple((item.platform, item.compressed_bytes) for item in image.platforms)
    assert SourceImage(picture.top, sizes, image, "https://unreachable.invalid") == told
    assert not vault.folder.exists()


async def test_a_lock_that_was_edited_is_not_believed_against_the_documents(
    played: PlayedRegistry, vault: Vault
) -> None:
    picture, other = two_platforms(), one_platform(layers=3)
    played.add(picture)
    pin = pin_of(picture, played.host)
    true = locked_image(f"{played.host}/org/x:v1", picture.top, picture.read)
    wrong = locked_image("x", other.top, other.read).platforms[0].config
    edited = replace(true, platforms=tuple(replace(item, config=wrong) for item in true.platforms))
    supply = Supply(vault, {}, Lock((edited,)))
    assert edited == supply.locked(pin), "as long as nothing else is known"
    assert true == supply.checked(pin)
    told = await Supply(vault, {}, Lock((edited,))).describe(pin)
    assert isinstance(told, SourceUnknown)
    assert "fleet.lock says" in told.reason
    assert isinstance(await Supply(vault, {}, Lock((true,))).describe(pin), SourceImage)
    silent = Supply(Vault(vault.folder / "none"), {played.host: "http://127.0.0.1:9"}, Lock((edited,)))
    assert edited == silent.checked(pin), "nobody answers"


async def test_a_registry_is_asked_once_and_never_again_by_later_runs(played: PlayedRegistry, vault: Vault) -> None:
    picture = two_platforms()
    played.add(picture)
    pin = pin_of(picture, played.host)
    supply = Supply(vault, {})
    told, again = await asyncio.gather(supply.describe(pin), supply.describe(pin))
    assert told == again == await supply.describe(pin)
    assert isinstance(told, SourceImage)
    assert (played.url, ("linux/amd64", "linux/arm64")) == (told.origin, told.platforms)
    asked = len(played.asked)
    assert 5 == asked
    later = await Supply(vault, {}).describe(pin)
    assert isinstance(later, SourceImage)
    assert (played.url, told.image, asked) == (later.origin, later.image, len(played.asked))


async def test_a_vault_that_went_bad_is_not_believed(played: PlayedRegistry, vault: Vault) -> None:
    picture = one_platform()
    played.add(picture)
    pin = pin_of(picture, played.host)
    await Supply(vault, {}).describe(pin)
    vault.path(picture.top).write_bytes(b"{}")
    told = await Supply(vault, {}).describe(pin)
    assert isinstance(told, SourceImage)
    assert played.url == told.origin
    assert picture.blobs[picture.top] == vault.read(picture.top)


async def test_a_partly_filled_vault_tells_what_it_has_where_nobody_answers(vault: Vault) -> None:
    picture = two_platforms()
    arm = picture.json(picture.top)["manifests"][0]["digest"]
    for digest in (picture.top, arm, picture.json(arm)["config"]["digest"]):
        vault.put(picture.blobs[digest])
    told = await Supply(vault, {}).describe(pin_of(picture, "127.0.0.1:1"))
    assert isinstance(told, SourceImage)
    assert ("http://127.0.0.1:1", ("linux/arm64",)) == (told.origin, told.platforms)


async def test_the_origin_is_where_the_layers_would_come_from(vault: Vault) -> None:
    """Whoever told of the image, and however much of it besides the layers is in the vault."""
    picture = two_platforms()
    image = locked_image("ghcr.io/org/x:v1", picture.top, picture.read)
    layers = [layer.digest for layer in image.platforms[1].layers]
    origins = []
    for digest in (None, picture.top, *layers):
        if digest is not None:
            vault.put(picture.blobs[digest])
        told = await Supply(vault, {}, Lock((image,))).describe(pin_of(picture, "ghcr.io"))
        assert isinstance(told, SourceImage)
        origins.append(told.origin)
    url = "https://ghcr.io"
    assert [url, url, f"the vault and {url}", "the vault"] == origins


async def test_what_the_registry_has_not_is_missing(played: PlayedRegistry, vault: Vault) -> None:
    told = await Supply(vault, {}).describe(pin_of(one_platform(), played.host))
    assert isinstance(told, SourceMissing)
    assert played.url in told.reason


async def test_what_cannot_be_asked_is_unknown_with_the_reason(played: PlayedRegistry, vault: Vault) -> None:
    picture = one_platform()
    supply = Supply(vault, {"ghcr.io": "http://127.0.0.1:1"}, from_nodes=frozenset({"ghcr.io"}))
    told = await supply.describe(pin_of(picture, "ghcr.io"))
    assert isinstance(told, SourceUnknown)
    assert "http://127.0.0.1:1: " in told.reason
    assert "from_nodes" in told.reason
    local = await supply.describe(ImagePin(picture.top, picture.top, "id"))
    assert SourceUnknown(picture.top, "a local build has no registry") == local
    played.auth, played.user = "basic", ("me", "secret")
    denied = await supply.describe(pin_of(picture, played.host))
    assert isinstance(denied, SourceUnknown)
    assert "docker login" in denied.reason


async def test_an_endpoint_stands_for_its_registry(played: PlayedRegistry, vault: Vault) -> None:
    picture = one_platform()
    played.add(picture)
    told = await Supply(vault, {"ghcr.io": f"{played.url}/"}).describe(pin_of(picture, "ghcr.io"))
    assert isinstance(told, SourceImage)
    assert played.url == told.origin


async def test_a_published_image_is_in_vaults_and_nowhere_else(vault: Vault) -> None:
    picture = one_platform()
    pin = pin_of(picture, PUBLISHED)
    missing = await Supply(vault, {}).describe(pin)
    assert isinstance(missing, SourceMissing)
    for digest in documents(picture):
        vault.put(picture.blobs[digest])
    supply = Supply(vault, {})
    told = await supply.describe(pin)
    assert isinstance(told, SourceImage)
    assert "" == told.origin
    layer = picture.json(picture.top)["layers"][0]["digest"]
    with pytest.raises(SupplyError, match="no registry"):
        fetched(supply, layer)


async def test_a_vault_that_cannot_be_written_is_no_reason_not_to_know_the_image(
    played: PlayedRegistry, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("no folder")
    picture = one_platform()
    played.add(picture)
    told = await Supply(Vault(tmp_path / "file"), {}).describe(pin_of(picture, played.host))
    assert isinstance(told, SourceImage | SourceUnknown)
    assert isinstance(told, SourceImage), told.reason


# bytes


async def test_the_blobs_of_a_platform_are_what_its_daemon_asks_for(played: PlayedRegistry, vault: Vault) -> None:
    picture = two_platforms()
    played.add(picture)
    pin = pin_of(picture, played.host)
    supply = Supply(vault, {})
    await supply.describe(pin)
    arm = picture.json(picture.top)["manifests"][0]["digest"]
    manifest = picture.json(arm)
    wanted = [picture.top, arm, manifest["config"]["digest"], *(layer["digest"] for layer in manifest["layers"])]
    assert {digest: len(picture.blobs[digest]) for digest in wanted} == supply.blobs_of(pin, "linux/arm64")
    with pytest.raises(SupplyError, match="made for linux/amd64, linux/arm64, not for linux/riscv64"):
        supply.blobs_of(pin, "linux/riscv64")


async def test_every_blob_comes_from_upstream_also_when_only_the_lock_is_known(
    played: PlayedRegistry, vault: Vault
) -> None:
    picture = two_platforms()
    played.add(picture)
    pin = pin_of(picture, played.host)
    supply = Supply(vault, {}, Lock((locked_image("x", picture.top, picture.read),)))
    with pytest.raises(SupplyError) as told:
        fetched(supply, picture.top)
    assert SupplyErrorKind.NOT_FOUND is told.value.kind
    for platform in ("linux/amd64", "linux/arm64"):
        for digest in supply.blobs_of(pin, platform):
            assert picture.blobs[digest] == fetched(supply, digest)
            assert picture.blobs[digest][3:] == fetched(supply, digest, 3)


async def test_a_node_that_has_the_image_is_asked_first(played: PlayedRegistry, vault: Vault) -> None:
    picture = one_platform()
    pin = pin_of(picture, played.host)
    supply = Supply(vault, {})
    assert isinstance(await supply.describe(pin), SourceMissing)
    node = PlayedNode(picture.blobs)
    supply.add_source(pin, node)
    told = await supply.describe(pin)
    assert isinstance(told, SourceImage)
    assert "node dgx1" == told.origin == supply.teller(pin)
    before = len(played.asked)
    for digest in supply.blobs_of(pin, "linux/arm64"):
        assert picture.blobs[digest] == fetched(supply, digest)
    assert before == len(played.asked)


async def test_a_source_that_fails_before_its_first_byte_gives_way(played: PlayedRegistry, vault: Vault) -> None:
    picture = one_platform()
    played.add(picture)
    pin = pin_of(picture, played.host)
    supply = Supply(vault, {})
    supply.add_source(pin, PlayedNode({**picture.blobs}, breaks_at=0))
    await supply.describe(pin)
    layer = picture.json(picture.top)["layers"][0]["digest"]
    assert picture.blobs[layer] == fetched(supply, layer)


async def test_a_source_that_fails_later_is_told_so_that_the_rest_can_be_fetched(
    played: PlayedRegistry, vault: Vault
) -> None:
    picture = one_platform()
    pin = pin_of(picture, played.host)
    supply = Supply(vault, {})
    supply.add_source(pin, PlayedNode(picture.blobs, breaks_at=5))
    await supply.describe(pin)
    layer = picture.json(picture.top)["layers"][0]["digest"]
    came: list[bytes] = []
    with supply.fetch(layer) as chunks, pytest.raises(SupplyError, match="went away"):
        came.extend(chunks)
    assert [picture.blobs[layer][:5]] == came


async def test_nobody_who_can_go_on_in_the_middle_is_refused(played: PlayedRegistry, vault: Vault) -> None:
    picture = one_platform()
    played.add(picture)
    played.has_ranges = False
    pin = pin_of(picture, played.host)
    supply = Supply(vault, {})
    supply.add_source(pin, PlayedNode(picture.blobs, breaks_at=0))
    await supply.describe(pin)
    layer = picture.json(picture.top)["layers"][0]["digest"]
    with pytest.raises(SupplyError) as told:
        fetched(supply, layer, 2)
    assert SupplyErrorKind.REFUSED is told.value.kind
    assert "went away; " in told.value.message
