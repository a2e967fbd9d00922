"""The lab's images: a few megabytes of busybox, and an inference engine that really serves.

`tiny` is busybox alone. `llamacpp` adds llama.cpp's server and RPC worker, from Debian's next release, in a second
layer on the same base. `llamacpp-arm64` says that it is for another architecture. `tiny-multi` is an index of two
platforms, whose digest is not the digest of the image that runs.

A llama.cpp RPC head whose worker dies goes on answering 200 on `/health` and `/v1/models`; the next generation kills it
(the connection breaks, the log ends with "Remote RPC server crashed or returned malformed response", exit code 139).
The worker of a head that dies stays up and serves the next head.
"""

import json
import shutil
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

from . import debs, oci
from .cache import artefact, source
from .oci import Descriptor, Image, Layout
from .shell import run

# The libraries with all that they need; the tools without, since those also ask for a downloader.
LIBRARIES = ["libllama0", "libggml0", "libggml0-backend-rpc"]
TOOLS = ["llama.cpp-tools", "llama.cpp-tools-extra"]
KEEP = ["usr/lib/**/*.so*", "usr/lib64/*", "usr/bin/llama-server", "usr/libexec/**/ggml-rpc-server"]
BUSYBOX = ["busybox-static"]
RUN_CONFIG = {"Env": ["PATH=/usr/local/bin:/usr/bin:/bin"], "Cmd": ["/bin/sh"], "WorkingDir": "/"}


@dataclass(frozen=True)
class BuiltImage:
    """An image in the cache: what a registry will serve under its digest."""

    name: str
    digest: str
    config_digest: str
    architecture: str
    compressed_bytes: int


@dataclass(frozen=True)
class ImageSet:
    """All images of the lab, in one OCI layout."""

    layout: Path
    images: tuple[BuiltImage, ...]


def ensure_images() -> ImageSet:
    """The images, built once."""
    recipe = [debs.architecture(), *source(debs, oci, sys.modules[__name__])]
    folder = artefact("images", recipe, build)
    entries = json.loads((folder / "images.json").read_text())
    return ImageSet(folder / "oci", tuple(BuiltImage(**entry) for entry in entries))


def build(folder: Path) -> None:
    debs.refresh()
    base_root(folder)
    llama_root(folder)
    images = write_layout(folder)
    (folder / "images.json").write_text(json.dumps([asdict(image) for image in images], indent=2))
    for scratch in ("debs", "base", "unpacked", "llama"):
        shutil.rmtree(folder / scratch)


def base_root(folder: Path) -> None:
    """Busybox with a link for each of its programs, and the few files that programs expect."""
    base = folder / "base"
    debs.unpack(debs.download(BUSYBOX, folder / "debs" / "base"), folder / "unpacked" / "base")
    for directory in ("usr/bin", "usr/local/bin", "usr/lib", "usr/lib64", "etc", "root", "tmp", "var/tmp", "srv"):
        (base / directory).mkdir(parents=True)
    (base / "tmp").chmod(0o1777)
    for link, target in {"bin": "usr/bin", "sbin": "usr/bin", "lib": "usr/lib", "lib64": "usr/lib64"}.items():
        (base / link).symlink_to(target)
    busybox = base / "usr/bin/busybox"
    shutil.copy(next((folder / "unpacked" / "base").glob("usr/bin/busybox")), busybox)
    for applet in run([str(busybox), "--list"]).stdout.split():
        if applet != "busybox":
            (base / "usr/bin" / applet).symlink_to("busybox")
    (base / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\n")
    (base / "etc/group").write_text("root:x:0:\nnogroup:x:65534:\n")


def llama_root(folder: Path) -> None:
    """Only the server, the RPC worker and the libraries: a tenth of what the packages hold."""
    unpacked, llama = folder / "unpacked" / "llama", folder / "llama"
    packages = debs.download([*debs.closure(LIBRARIES), *TOOLS], folder / "debs" / "llama")
    (folder / "versions").write_text("".join(f"{package.name}\n" for package in packages))
    debs.unpack(packages, unpacked)
    for pattern in KEEP:
        for path in sorted(unpacked.glob(pattern)):
            place = llama / path.relative_to(unpacked)
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, place, follow_symlinks=False)
    worker = next(llama.glob("usr/libexec/**/ggml-rpc-server"))
    (llama / "usr/bin/ggml-rpc-server").symlink_to(f"/{worker.relative_to(llama)}")


def write_layout(folder: Path) -> list[BuiltImage]:
    layout = Layout(folder / "oci")
    base, llama = layout.layer(folder / "base"), layout.layer(folder / "llama")
    native, other = debs.architecture(), "arm64" if debs.architecture() != "arm64" else "amd64"
    tiny = layout.image([base], architecture=native, config=RUN_CONFIG)
    foreign = layout.image([base], architecture=other, config=RUN_CONFIG)
    engine = layout.image([base, llama], architecture=native, config=RUN_CONFIG)
    index = layout.index([tiny, foreign])
    named = [
        ("llamacpp", engine, engine.manifest),
        (f"llamacpp-{other}", foreign, foreign.manifest),
        ("tiny", tiny, tiny.manifest),
        ("tiny-multi", tiny, index),
    ]
    for name, _, target in named:
        layout.name(name, target)
    layout.close()
    return [built(name, image, target) for name, image, target in named]


def built(name: str, image: Image, target: Descriptor) -> BuiltImage:
    size = sum(layer.blob.size for layer in image.layers)
    return BuiltImage(name, target.digest, image.config.digest, image.architecture, size)
