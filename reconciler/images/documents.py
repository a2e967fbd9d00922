"""From the documents of an image (index, manifest, config) to its content down to the layers. Pure.

Nothing is believed: each document hashes to the digest it was asked by, has the size its parent gives, and the config
has as many layers as the manifest. OCI and Docker's own media types (schema 2) say the same in the same fields.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from reconciler.core.lock import LockedImage, LockedLayer, LockedPlatform
from reconciler.images.errors import SupplyError, SupplyErrorKind

Json = Mapping[str, Any]
Read = Callable[[str, int], bytes]
"""Digest and largest size in bytes -> the document. Raises `SupplyError`."""

OCI_INDEX = "application/vnd.oci.image.index.v1+json"
OCI_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
MANIFESTS = (
    OCI_INDEX,
    OCI_MANIFEST,
    "application/vnd.docker.distribution.manifest.list.v2+json",
    "application/vnd.docker.distribution.manifest.v2+json",
)
"""What to accept, index and manifest alike."""

LARGEST_DOCUMENT = 16 * 1024 * 1024
"""Bytes. Manifests are kilobytes; a config of a long build some hundred."""

_DIGEST = re.compile(r"sha256:[0-9a-f]{64}", re.ASCII)
_ATTESTATION = "vnd.docker.reference.type"


def digest_of(data: bytes) -> str:
    """The digest of these bytes."""
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def locked_image(name: str, digest: str, read: Read) -> LockedImage:
    """The image of this top digest, with all its platforms that can be had. Raises `SupplyError`.

    An index may name platforms that its registry or archive does not have: they are left out.
    """
    data = read_document(digest, LARGEST_DOCUMENT, read)
    top = parsed(data, digest)
    if "manifests" not in top:
        platforms = [_platform(top, digest, len(data), "", read)]
    else:
        platforms = list(_platforms(top, digest, read))
        if not platforms:
            message = f"{digest} is an index without any image"
            raise SupplyError(SupplyErrorKind.REFUSED, message, "pin an image that is built for the nodes' platform")
    found: dict[str, LockedPlatform] = {}
    for item in platforms:
        found.setdefault(item.platform, item)
    ordered = tuple(sorted(found.values(), key=lambda item: item.platform))
    return LockedImage(name, digest, "digest", ordered, len(data))


def read_document(digest: str, largest: int, read: Read) -> bytes:
    """A document, and really that one. Raises `SupplyError`."""
    data = read(digest, largest)
    if digest_of(data) != digest:
        raise _damaged(f"what came for {digest} is something else")
    return data


def parsed(data: bytes, digest: str) -> Json:
    """The JSON object of a document. Raises `SupplyError` for anything else, and for images of schema 1."""
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise _damaged(f"{digest} is not a manifest")
    if found.get("schemaVersion") == 1:
        message = f"{digest} is a manifest of schema 1, which names no content of layers"
        raise SupplyError(SupplyErrorKind.REFUSED, message, "push the image again with a Docker of this decade")
    return found


def images_of(index: Json, digest: str) -> Iterator[Json]:
    """The entries of an index that are images: no attestations, nothing of an unknown platform."""
    entries = index.get("manifests")
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise _damaged(f"the entries of the index {digest} are no manifests")
    for entry in entries:
        is_attestation = _ATTESTATION in (entry.get("annotations") or {})
        if not is_attestation and platform_of(entry.get("platform")) != "unknown/unknown":
            yield entry


def platform_of(found: object) -> str:
    """`linux/arm64` of a platform object or a config. The variant is left out: arm64 is v8 everywhere we run."""
    return f"{found.get('os', '')}/{found.get('architecture', '')}" if isinstance(found, dict) else "/"


def _platforms(index: Json, digest: str, read: Read) -> Iterator[LockedPlatform]:
    """Those that are there, or the failure to get any."""
    count, missing = 0, None
    for entry in images_of(index, digest):
        child, size = descriptor(entry, f"the index {digest}")
        try:
            data = _of_size(child, size, read)
        except SupplyError as error:
            if error.kind is not SupplyErrorKind.NOT_FOUND:
                raise
            missing = error
            continue
        count += 1
        yield _platform(parsed(data, child), child, size, platform_of(entry.get("platform")), read)
    if missing is not None and not count:
        raise missing


def _platform(manifest: Json, digest: str, size: int, told: str, read: Read) -> LockedPlatform:
    where = f"the manifest {digest}"
    config, config_bytes = descriptor(manifest.get("config"), where)
    blobs = manifest.get("layers")
    if not isinstance(blobs, list):
        raise _damaged(f"{where} has no list of layers")
    content = parsed(_of_size(config, config_bytes, read), config)
    rootfs = content.get("rootfs")
    diff_ids = rootfs.get("diff_ids") if isinstance(rootfs, dict) else None
    if not isinstance(diff_ids, list):
        message = f"{digest} is not an image that can be run: its config names no layers"
        raise SupplyError(SupplyErrorKind.REFUSED, message, "pin a container image, not a chart or another artifact")
    if len(diff_ids) != len(blobs):
        raise _damaged(f"{where} has {len(blobs)} layers, but its config {len(diff_ids)}")
    own = platform_of(content)
    layers = tuple(_layer(blob, diff_id, where) for blob, diff_id in zip(blobs, diff_ids, strict=True))
    return LockedPlatform(told if own == "/" else own, digest, size, config, config_bytes, layers)


def _layer(blob: object, diff_id: object, where: str) -> LockedLayer:
    digest, size = descriptor(blob, where)
    if not isinstance(diff_id, str) or not _DIGEST.fullmatch(diff_id):
        raise _damaged(f"{where} has a config with a diff id that is none")
    return LockedLayer(digest, size, diff_id)


def _of_size(digest: str, size: int, read: Read) -> bytes:
    if size > LARGEST_DOCUMENT:
        raise _damaged(f"{digest} has {size} bytes: that is no manifest and no config")
    data = read_document(digest, size, read)
    if len(data) != size:
        raise _damaged(f"{digest} has {len(data)} bytes where its parent says {size}")
    return data


def descriptor(found: object, where: str) -> tuple[str, int]:
    """Digest and size in bytes that a document gives for another. Raises `SupplyError` when it gives neither."""
    digest, size = (found.get("digest"), found.get("size")) if isinstance(found, dict) else (None, None)
    if not isinstance(digest, str) or not _DIGEST.fullmatch(digest):
        raise _damaged(f"{where} names something without a sha256 digest")
    if not isinstance(size, int) or isinstance(size, bool) or size < 0:
        raise _damaged(f"{where} does not say the size of {digest}")
    return digest, size


def _damaged(message: str) -> SupplyError:
    return SupplyError(SupplyErrorKind.DAMAGED, message, "the source is broken, or its bytes were changed on the way")
