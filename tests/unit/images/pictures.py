"""Small images made here: layers, config, manifest and index, with all digests right unless a test says otherwise."""

import gzip
import hashlib
import io
import json
import tarfile
from dataclasses import dataclass, field
from typing import Any

from reconciler.images.documents import OCI_INDEX, OCI_MANIFEST
from reconciler.images.errors import SupplyError, SupplyErrorKind

Json = dict[str, Any]


def sha(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def layer_tar(name: str, content: bytes = b"content") -> bytes:
    """An uncompressed layer with one file."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        info = tarfile.TarInfo(name)
        info.size = len(content)
        tar.addfile(info, io.BytesIO(content))
    return out.getvalue()


@dataclass
class Picture:
    """The blobs of an image by digest, and which is the top."""

    blobs: dict[str, bytes] = field(default_factory=dict)
    top: str = ""
    raw: list[bytes] = field(default_factory=list)

    def add(self, content: bytes | Json | list[Any]) -> str:
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        digest = sha(data)
        self.blobs[digest] = data
        return digest

    def descriptor(self, digest: str, media_type: str = "", **more: Any) -> Json:
        return {"mediaType": media_type, "digest": digest, "size": len(self.blobs[digest]), **more}

    def manifest(
        self, platform: str, layers: list[bytes], *, compress: bool = True, changed: Json | None = None
    ) -> str:
        """A manifest of these uncompressed layers; it becomes the top. `changed`: fields of the manifest."""
        system, architecture = platform.split("/")
        self.raw += layers
        config = {
            "os": system,
            "architecture": architecture,
            "rootfs": {"type": "layers", "diff_ids": [sha(layer) for layer in layers]},
        }
        blobs = [self.add(gzip.compress(layer, mtime=0) if compress else layer) for layer in layers]
        content = {
            "schemaVersion": 2,
            "mediaType": OCI_MANIFEST,
            "config": self.descriptor(self.add(config), "application/vnd.oci.image.config.v1+json"),
            "layers": [self.descriptor(blob, "application/vnd.oci.image.layer.v1.tar+gzip") for blob in blobs],
            **(changed or {}),
        }
        self.top = self.add(content)
        return self.top

    def index(self, *entries: tuple[str, str]) -> str:
        """An index of manifests by their platform; it becomes the top."""
        made = []
        for digest, platform in entries:
            system, architecture = platform.split("/")
            own = {"os": system, "architecture": architecture}
            made.append(self.descriptor(digest, OCI_MANIFEST, platform=own))
        self.top = self.add({"schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": made})
        return self.top

    def read(self, digest: str, largest: int = 2**62) -> bytes:
        if digest not in self.blobs:
            raise SupplyError(SupplyErrorKind.NOT_FOUND, f"there is no {digest}")
        return self.blobs[digest]

    def json(self, digest: str) -> Json:
        found: Json = json.loads(self.blobs[digest])
        return found


def one_platform(platform: str = "linux/arm64", layers: int = 2) -> Picture:
    picture = Picture()
    picture.manifest(platform, [layer_tar(f"file{number}") for number in range(layers)])
    return picture


def two_platforms() -> Picture:
    picture = Picture()
    arm = picture.manifest("linux/arm64", [layer_tar("base"), layer_tar("arm")])
    amd = picture.manifest("linux/amd64", [layer_tar("base"), layer_tar("amd")])
    seen = picture.add({"schemaVersion": 2, "config": {}, "layers": []})
    picture.index((arm, "linux/arm64"), (amd, "linux/amd64"), (seen, "unknown/unknown"))
    return picture
