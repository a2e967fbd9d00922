"""Archives as `docker save` writes them, of the images made here."""

import io
import json
import tarfile
from collections.abc import Iterator, Mapping
from typing import Any

from tests.unit.images.pictures import Picture, sha


def tarred(files: Mapping[str, bytes | str]) -> bytes:
    """An archive of files; text stands for a symbolic link to it."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            if isinstance(content, str):
                info.type, info.linkname = tarfile.SYMTYPE, content
                tar.addfile(info)
            else:
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))
    return out.getvalue()


def packed(content: Any) -> bytes:
    return json.dumps(content).encode()


def blob_name(digest: str) -> str:
    return f"blobs/sha256/{digest.removeprefix('sha256:')}"


def containerd_files(picture: Picture, top: str = "", without: tuple[str, ...] = ()) -> dict[str, bytes | str]:
    """Of a containerd store: the original blobs; names in the order in which it writes them."""
    blobs = {blob_name(digest): data for digest, data in picture.blobs.items() if digest not in without}
    index = {"schemaVersion": 2, "manifests": [{"digest": top or picture.top, "size": 1}]}
    return {**dict(sorted(blobs.items())), "index.json": packed(index), "oci-layout": packed({})}


def config_of(picture: Picture) -> tuple[str, bytes]:
    digest = picture.json(picture.top)["config"]["digest"]
    return digest, picture.blobs[digest]


def classic_files(picture: Picture) -> dict[str, bytes | str]:
    """Of a classic store since Docker 25: uncompressed layers, and a manifest of its own over them."""
    config, data = config_of(picture)
    blobs = {blob_name(sha(raw)): raw for raw in picture.raw} | {blob_name(config): data}
    own = {"schemaVersion": 2, "config": {"digest": config, "size": len(data)}, "layers": []}
    blobs[blob_name(sha(packed(own)))] = packed(own)
    layers = [blob_name(sha(raw)) for raw in picture.raw]
    return {
        **dict(sorted(blobs.items())),
        "index.json": packed({"manifests": [{"digest": sha(packed(own))}]}),
        "manifest.json": packed([{"Config": blob_name(config), "RepoTags": None, "Layers": layers}]),
        "oci-layout": packed({"imageLayoutVersion": "1.0.0"}),
    }


def old_files(picture: Picture) -> dict[str, bytes | str]:
    """Of a Docker before 25: a folder a layer; a layer that comes twice is a link the second time."""
    config, data = config_of(picture)
    files: dict[str, bytes | str] = {}
    seen: dict[bytes, str] = {}
    for number, raw in enumerate(picture.raw):
        folder = f"{number:064x}"
        files[f"{folder}/VERSION"] = b"1.0"
        files[f"{folder}/json"] = packed({"id": folder})
        files[f"{folder}/layer.tar"] = f"../{seen[raw]}/layer.tar" if raw in seen else raw
        seen.setdefault(raw, folder)
    layers = [f"{number:064x}/layer.tar" for number in range(len(picture.raw))]
    files[f"{config.removeprefix('sha256:')}.json"] = data
    files["manifest.json"] = packed([{"Config": f"{config.removeprefix('sha256:')}.json", "Layers": layers}])
    files["repositories"] = packed({"x": {"latest": "0"}})
    return files


def chunked(data: bytes, size: int = 1000) -> Iterator[bytes]:
    for begin in range(0, len(data), size):
        yield data[begin : begin + size]
