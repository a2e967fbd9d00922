"""An image of ten layers, a good GiB compressed, and the same with another top layer, in a registry by digest.

Half of each layer is random and half compresses well: about 2 to 1, as images of inference engines do (29.5 GiB are
14.2 GiB compressed).
"""

import gzip
import hashlib
import io
import json
import random
import sys
import tarfile
from dataclasses import asdict
from pathlib import Path

from tests.lab import debs, oci
from tests.lab.cache import artefact, source
from tests.lab.image import BuiltImage, built
from tests.lab.oci import LAYER, Layer, Layout
from tests.lab.registry import Registry, push_one

LAYERS = 10
LAYER_MIB = 220
NAMES = ("big", "big-next")


def ensure() -> tuple[Path, dict[str, BuiltImage]]:
    """The OCI layout and the two images in it; built once."""
    recipe = [debs.architecture(), *source(oci, sys.modules[__name__])]
    folder = artefact("big-image", recipe, _build)
    entries = json.loads((folder / "images.json").read_text())
    return folder / "oci", {entry["name"]: BuiltImage(**entry) for entry in entries}


def push(registry: Registry) -> dict[str, str]:
    """Both in the registry; their references."""
    layout, images = ensure()
    for image in images.values():
        push_one(registry, layout, image)
    return {name: registry.reference(image) for name, image in images.items()}


def top_layer_bytes() -> int:
    """Compressed bytes of the layer in which the two differ."""
    layout, images = ensure()
    digest = images["big-next"].digest.removeprefix("sha256:")
    manifest = json.loads((layout / "blobs" / "sha256" / digest).read_text())
    return int(manifest["layers"][-1]["size"])


def _build(folder: Path) -> None:
    layout = Layout(folder / "oci")
    base = [_layer(layout, number) for number in range(LAYERS - 1)]
    tops = [_layer(layout, LAYERS - 1), _layer(layout, LAYERS)]
    images = []
    for name, top in zip(NAMES, tops, strict=True):
        config = {"Cmd": ["/bin/sh"]}
        image = layout.image([*base, top], architecture=debs.architecture(), config=config)
        layout.name(name, image.manifest)
        images.append(built(name, image, image.manifest))
    layout.close()
    (folder / "images.json").write_text(json.dumps([asdict(image) for image in images], indent=2))


def _layer(layout: Layout, number: int) -> Layer:
    raw = _tar(number)
    blob = layout.blob(gzip.compress(raw, compresslevel=6, mtime=0), LAYER)
    return Layer(blob, f"sha256:{hashlib.sha256(raw).hexdigest()}")


def _tar(number: int) -> bytes:
    """Files of 10 MiB, each half noise."""
    noise = random.Random(number)
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for part in range(LAYER_MIB // 10):
            content = noise.randbytes(5 << 20) + (f"layer {number} part {part}\n".encode() * (1 << 19))[: 5 << 20]
            member = tarfile.TarInfo(f"opt/layer{number}/part{part}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return buffer.getvalue()
