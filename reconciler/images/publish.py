"""From the archive of `docker save` to blobs in the vault: a local build that no registry has gets a digest.

The archive is read once, as it comes; nothing of it is kept but blobs. Two kinds come from daemons:

* of the containerd store: the original blobs and documents. They are kept as they are, and so is the digest;
* of the classic store: uncompressed layers. They are compressed here, the same bytes each time, and a manifest is
  written. The config is untouched, so the classic store's id of the image is that of the published one.

Every layer is unpacked while it passes and held against the config: an archive that was cut or changed is refused.
"""

import io
import json
import posixpath
import tarfile
from collections.abc import Iterable, Mapping
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

from reconciler.core.lock import LockedImage
from reconciler.images.archive_layers import BLOBS, CHUNK_BYTES, Layers, damaged
from reconciler.images.documents import (
    LARGEST_DOCUMENT,
    OCI_MANIFEST,
    descriptor,
    digest_of,
    images_of,
    locked_image,
    parsed,
)

if TYPE_CHECKING:
    from reconciler.images.vault import Vault

OCI_CONFIG = "application/vnd.oci.image.config.v1+json"
OCI_LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"

ALL_DOCUMENTS = 4 * LARGEST_DOCUMENT
"""Bytes of all documents of an archive together: they are held in memory."""

MOST_LINKS = 16
"""From a layer to the one it is the same as; old archives have one such step."""

Json = Mapping[str, Any]


def publish(archive: Iterable[bytes], image_id: str, name: str, vault: "Vault") -> LockedImage:
    """Put the one image of an archive into the vault; the image, locked under `name`.

    `image_id`: what the daemon that saved it calls it; the archive has to be of that. Raises `SupplyError`: DAMAGED for
    an archive that is cut, changed or of another image. Whatever was put into the vault before that is part of nothing.
    """
    found = _Archive(vault)
    try:
        found.read(archive)
    except (tarfile.TarError, EOFError) as error:
        raise damaged(f"it is cut or broken ({error})") from error
    top = found.original(image_id) or found.rebuilt(image_id)
    image = locked_image(name, top, found.document)
    for platform in image.platforms:
        for layer in platform.layers:
            found.layers.insist(layer.digest, layer.diff_id)
    below = (digest for item in image.platforms for digest in (item.config, item.manifest))
    for digest in (*below, top):  # the top last: nothing leads to the others before they are all there
        vault.put(found.document(digest, LARGEST_DOCUMENT))
    return image


class _Archive:
    """What came: documents by name and by digest, layers in the vault."""

    def __init__(self, vault: "Vault") -> None:
        self.layers = Layers(vault)
        self._named: dict[str, bytes] = {}
        self._documents: dict[str, bytes] = {}
        self._links: dict[str, str] = {}

    def read(self, archive: Iterable[bytes]) -> None:
        """All of it, to the last byte: whoever sends it may have something to say at its end."""
        stream = _Stream(archive)
        with tarfile.open(fileobj=stream, mode="r|", bufsize=CHUNK_BYTES) as tar:
            for member in tar:
                self._take(tar, member)
        stream.drain()

    def _take(self, tar: tarfile.TarFile, member: tarfile.TarInfo) -> None:
        name = posixpath.normpath(member.name)
        if member.issym():
            self._links[name] = posixpath.normpath(posixpath.join(posixpath.dirname(name), member.linkname))
        elif member.islnk():
            self._links[name] = posixpath.normpath(member.linkname)
        file = tar.extractfile(member) if member.isreg() else None
        if file is None:
            return
        first = file.read(CHUNK_BYTES)
        rest = iter(partial(file.read, CHUNK_BYTES), b"")
        if first[:1] in {b"{", b"["} and member.size <= LARGEST_DOCUMENT and not name.endswith(".tar"):
            self._note(name, first + b"".join(rest))
        elif name.startswith(BLOBS) or name.endswith(".tar"):
            self.layers.take(name, chain((first,), rest))

    def _note(self, name: str, data: bytes) -> None:
        self._named[name] = self._documents[digest_of(data)] = data
        if sum(map(len, self._named.values())) > ALL_DOCUMENTS:
            raise damaged(f"its documents have more than {ALL_DOCUMENTS // 2**20} MiB")
        if name.startswith(BLOBS) and digest_of(data) != f"sha256:{name.removeprefix(BLOBS)}":
            raise damaged(f"the bytes of {name} are others")

    def document(self, digest: str, largest: int) -> bytes:
        """A document by its digest. Raises `SupplyError`."""
        if digest not in self._documents:
            raise damaged(f"it lacks the document {digest}")
        return self._documents[digest]

    def original(self, image_id: str) -> str | None:
        """The digest of the image as it was pulled or built, where the archive has its own documents and blobs."""
        if image_id not in self._documents or image_id not in self._targets():
            return None
        top = parsed(self._documents[image_id], image_id)
        if "manifests" not in top:
            return image_id
        children = [descriptor(entry, "the index")[0] for entry in images_of(top, image_id)]
        there = [digest for digest in children if self._is_whole(digest)]
        if not there:
            raise damaged("it has an index, but no image of it")
        return image_id if len(there) == len(children) else there[0]

    def _is_whole(self, digest: str) -> bool:
        """Whether a manifest is here with all it names: an archive may lack other platforms than the daemon's own."""
        if digest not in self._documents:
            return False
        manifest = parsed(self._documents[digest], digest)
        config, _ = descriptor(manifest.get("config"), f"the manifest {digest}")
        layers = [descriptor(item, f"the manifest {digest}")[0] for item in manifest.get("layers") or ()]
        return config in self._documents and all(self.layers.has(layer) for layer in layers)

    def rebuilt(self, image_id: str) -> str:
        """The digest of a new manifest over the compressed layers, for an archive of a classic store."""
        described = self._described()
        data = self._at(posixpath.normpath(str(described.get("Config"))))
        config = digest_of(data)
        if config != image_id:
            raise damaged(f"it is of the image {config}, not of {image_id}")
        paths = [posixpath.normpath(str(path)) for path in described.get("Layers") or ()]
        layers = [self.layers.at(self._resolved(path)) for path in paths]
        manifest = {
            "schemaVersion": 2,
            "mediaType": OCI_MANIFEST,
            "config": {"mediaType": OCI_CONFIG, "digest": config, "size": len(data)},
            "layers": [{"mediaType": OCI_LAYER, "digest": item.digest, "size": item.size_bytes} for item in layers],
        }
        text = json.dumps(manifest, separators=(",", ":")).encode()
        self._documents |= {config: data, digest_of(text): text}
        return digest_of(text)

    def _targets(self) -> set[str]:
        """The digests that the archive's own index names; classic stores of old write none."""
        index = _parsed(self._named.get("index.json", b"{}"))
        entries = index.get("manifests") if isinstance(index, dict) else None
        return {str(entry.get("digest")) for entry in entries or () if isinstance(entry, dict)}

    def _described(self) -> Json:
        """What the archive's `manifest.json` says of its only image."""
        found = _parsed(self._at("manifest.json"))
        if not isinstance(found, list) or len(found) != 1 or not isinstance(found[0], dict):
            raise damaged("it does not have one image")
        return found[0]

    def _at(self, name: str) -> bytes:
        if name not in self._named:
            raise damaged(f"it lacks {name}: it was cut, or is no archive of an image")
        return self._named[name]

    def _resolved(self, name: str) -> str:
        """Where the layer really stands."""
        for _ in range(MOST_LINKS):
            if name not in self._links:
                break
            name = self._links[name]
        return name


class _Stream(io.RawIOBase):
    """Chunks as they come, to be read like a file."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = iter(chunks)
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        """It is for nothing else."""
        return True

    def readinto(self, buffer: Any) -> int:
        """As much as is there."""
        while not self._rest:
            chunk = next(self._chunks, None)
            if chunk is None:
                return 0
            self._rest = memoryview(chunk)
        count = min(len(buffer), len(self._rest))
        buffer[:count] = self._rest[:count]
        self._rest = self._rest[count:]
        return count

    def drain(self) -> None:
        """To the end: whoever sends has something to say there."""
        for _ in self._chunks:
            pass


def _parsed(data: bytes) -> object:
    try:
        found: object = json.loads(data)
    except (ValueError, RecursionError):
        raise damaged("a document of it is not JSON") from None
    return found
