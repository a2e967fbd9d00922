"""Blobs read out of a content folder, by the same command lines as on a node."""

import hashlib
from pathlib import Path

import pytest

from reconciler.images.errors import SupplyError, SupplyErrorKind
from reconciler.images.sources import BlobSource
from reconciler.nodes.node_blobs import NodeBlobs

from .local_ssh import LocalSsh

CONTENT = bytes(range(256)) * 9000
DIGEST = f"sha256:{hashlib.sha256(CONTENT).hexdigest()}"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "its content"
    (place / "blobs" / "sha256").mkdir(parents=True)
    blob(place).write_bytes(CONTENT)
    return place


def blob(folder: Path) -> Path:
    return folder / "blobs" / "sha256" / DIGEST.partition(":")[2]


def source(folder: Path, noise: str = "") -> BlobSource:
    return NodeBlobs(LocalSsh("dgx1", noise), ["/nonexistent", str(folder)])


def read(blobs: BlobSource, offset: int = 0) -> bytes:
    with blobs.blob("any/thing", DIGEST, offset) as chunks:
        return b"".join(chunks)


@pytest.mark.parametrize("offset", [0, 1, 1_000_000, len(CONTENT) - 1, len(CONTENT)])
def test_a_blob_comes_from_any_place_on(folder: Path, offset: int) -> None:
    assert CONTENT[offset:] == read(source(folder), offset)


def test_what_the_login_shell_says_is_no_part_of_it(folder: Path) -> None:
    assert CONTENT == read(source(folder, noise="echo Welcome to dgx1; printf half"))


def test_a_document_is_proved(folder: Path) -> None:
    assert CONTENT == source(folder).document("any/thing", DIGEST)
    blob(folder).write_bytes(CONTENT[:-1] + b"x")
    with pytest.raises(SupplyError) as damaged:
        source(folder).document("any/thing", DIGEST)
    assert SupplyErrorKind.DAMAGED is damaged.value.kind
    assert "dgx1" in damaged.value.message


def test_one_that_is_not_there_is_not_found(folder: Path) -> None:
    blob(folder).unlink()
    with pytest.raises(SupplyError) as missing:
        read(source(folder))
    assert SupplyErrorKind.NOT_FOUND is missing.value.kind


def test_a_connection_that_breaks_off_is_told(folder: Path) -> None:
    script = "echo; echo '@@fleet blob 100'; printf abc; echo Connection reset >&2; exit 255"
    with pytest.raises(SupplyError) as broken:
        read(source(folder, noise=script))
    assert SupplyErrorKind.NO_ANSWER is broken.value.kind
    assert "Connection reset" in broken.value.message


def test_what_is_no_digest_never_becomes_a_path(folder: Path) -> None:
    with pytest.raises(SupplyError) as refused, source(folder).blob("any/thing", "sha256:../../etc/passwd"):
        pass
    assert SupplyErrorKind.REFUSED is refused.value.kind


def test_leaving_in_the_middle_ends_the_child(folder: Path) -> None:
    """It would write into a pipe that nobody reads."""
    with source(folder).blob("any/thing", DIGEST) as chunks:
        assert next(chunks)
