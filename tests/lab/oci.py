"""OCI images written file by file: no daemon, and the same bytes (so the same digest) every time."""

import gzip
import hashlib
import io
import json
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"
EPOCH = "1970-01-01T00:00:00Z"


@dataclass(frozen=True)
class Descriptor:
    """A blob by media type, digest and size, with the keys that OCI gives it in a parent document."""

    media_type: str
    digest: str
    size: int

    def json(self, **extra: object) -> dict[str, object]:
        return {"mediaType": self.media_type, "digest": self.digest, "size": self.size, **extra}


@dataclass(frozen=True)
class Layer:
    """A layer's blob, and the digest of its content before compression."""

    blob: Descriptor
    diff_id: str


@dataclass(frozen=True)
class Image:
    """An image of one platform."""

    manifest: Descriptor
    config: Descriptor
    architecture: str
    layers: tuple[Layer, ...]


class Layout:
    """An OCI image layout: a folder that `skopeo` can copy from."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._entries: list[dict[str, object]] = []
        (folder / "blobs" / "sha256").mkdir(parents=True, exist_ok=True)

    def blob(self, data: bytes, media_type: str) -> Descriptor:
        digest = hashlib.sha256(data).hexdigest()
        (self.folder / "blobs" / "sha256" / digest).write_bytes(data)
        return Descriptor(media_type, f"sha256:{digest}", len(data))

    def layer(self, root: Path) -> Layer:
        """A layer with the files of a folder."""
        raw = pack(root)
        blob = self.blob(gzip.compress(raw, compresslevel=6, mtime=0), LAYER)
        return Layer(blob, f"sha256:{hashlib.sha256(raw).hexdigest()}")

    def image(self, layers: Sequence[Layer], *, architecture: str, config: Mapping[str, object]) -> Image:
        """An image out of layers and a run configuration."""
        document = {
            "created": EPOCH,
            "architecture": architecture,
            "os": "linux",
            "config": dict(config),
            "rootfs": {"type": "layers", "diff_ids": [layer.diff_id for layer in layers]},
            "history": [{"created": EPOCH, "created_by": "fleet lab"} for _ in layers],
        }
        blob = self.blob(encode(document), CONFIG)
        manifest = {
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": blob.json(),
            "layers": [layer.blob.json() for layer in layers],
        }
        return Image(self.blob(encode(manifest), MANIFEST), blob, architecture, tuple(layers))

    def index(self, images: Sequence[Image]) -> Descriptor:
        """One name for images of several platforms."""
        manifests = [
            image.manifest.json(platform={"architecture": image.architecture, "os": "linux"}) for image in images
        ]
        return self.blob(encode({"schemaVersion": 2, "mediaType": INDEX, "manifests": manifests}), INDEX)

    def name(self, reference: str, target: Descriptor) -> None:
        """Give an image the name it is copied by."""
        self._entries.append(target.json(annotations={"org.opencontainers.image.ref.name": reference}))

    def close(self) -> None:
        (self.folder / "oci-layout").write_bytes(encode({"imageLayoutVersion": "1.0.0"}))
        (self.folder / "index.json").write_bytes(encode({"schemaVersion": 2, "manifests": self._entries}))


def encode(document: object) -> bytes:
    return json.dumps(document, sort_keys=True, separators=(",", ":")).encode()


def pack(root: Path) -> bytes:
    """A tar of a folder without anything that differs from run to run: order, times and owners."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path in sorted(root.rglob("*")):
            member = archive.gettarinfo(str(path), arcname=str(path.relative_to(root)))
            member.uid = member.gid = member.mtime = 0
            member.uname = member.gname = ""
            if member.isreg():
                with path.open("rb") as content:
                    archive.addfile(member, content)
            else:
                archive.addfile(member)
    return buffer.getvalue()
