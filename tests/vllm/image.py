"""The image that runs vLLM: the lab's busybox with this machine's Python interpreter, 40 MB. vLLM itself is mounted.

The environment is 3.5 GB: as a layer it would be packed once, and unpacked again by every node.
"""

import json
import re
import shutil
import sys
import sysconfig
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

from tests.lab import debs, image, oci
from tests.lab.cache import artefact, source
from tests.lab.image import BuiltImage, ImageSet
from tests.lab.oci import Layout
from tests.lab.shell import run

from .environment import HOME

NAME = "vllm"
LEFT_OUT = ("site-packages", "dist-packages", "test", "idlelib", "ensurepip", "config-*", "lib2to3", "turtledemo")
LSCPU = Path("/usr/bin/lscpu")
"""vLLM's CPU worker asks it which cores there are, before it does anything else."""

NAMES_FROM = "hosts: files\n"
"""Gloo asks for the name of each address it talks to: a name server that no node can reach costs ten seconds each."""

RUN_CONFIG = {
    "Env": [f"PATH={HOME}/bin:/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8", "HOME=/root"],
    "Entrypoint": ["vllm", "serve"],
    "WorkingDir": "/",
}
"""The entry point of the official image (https://docs.vllm.ai/en/stable/deployment/docker/)."""


def ensure_image(env: Path) -> ImageSet:
    """The image for an environment, in an OCI layout of its own; built once."""
    recipe = [str(env), *source(debs, oci, image, sys.modules[__name__])]

    def build_for(folder: Path) -> None:
        build(folder, env)

    folder = artefact("vllm-image", recipe, build_for)
    found = BuiltImage(**json.loads((folder / "image.json").read_text()))
    return ImageSet(folder / "oci", (found,))


def build(folder: Path, env: Path) -> None:
    debs.refresh()
    image.base_root(folder)
    python = folder / "python"
    pack_interpreter(python, env)
    pack_libraries(python, env)
    layout = Layout(folder / "oci")
    layers = [layout.layer(folder / "base"), layout.layer(python)]
    made = layout.image(layers, architecture=debs.architecture(), config=RUN_CONFIG)
    layout.name(NAME, made.manifest)
    layout.close()
    (folder / "image.json").write_text(json.dumps(asdict(image.built(NAME, made, made.manifest))))
    for scratch in ("debs", "base", "unpacked", "python"):
        shutil.rmtree(folder / scratch)


def pack_interpreter(root: Path, env: Path) -> None:
    """The interpreter that the environment's links point to, with its library, where they point; and `lscpu`."""
    program, library = base_program(env), Path(sysconfig.get_path("stdlib"))
    for file in (program, LSCPU):
        place(root, file)
    (root / "etc").mkdir()
    (root / "etc/nsswitch.conf").write_text(NAMES_FROM)
    ignored = shutil.ignore_patterns(*LEFT_OUT)
    shutil.copytree(library, inside(root, library), symlinks=True, ignore=ignored)


def base_program(env: Path) -> Path:
    """The first link outside of the environment."""
    path = env / "bin" / "python3"
    while path.is_relative_to(env):
        path = path.parent / path.readlink()
    return path


def pack_libraries(root: Path, env: Path) -> None:
    """Every library of this machine that the interpreter, its modules or the environment's are linked with."""
    binaries = [base_program(env), LSCPU, *root.rglob("*.so"), *env.rglob("*.so*")]
    for library in sorted(linked_with(binaries)):
        if not library.is_relative_to(env):
            place(root, library)


def linked_with(binaries: Iterable[Path]) -> set[Path]:
    """The libraries that the loader would take, by its own word (`ldd`, see ld.so(8)); what it lacks is not needed."""
    said = run(["ldd", *map(str, binaries)], check=False, timeout=120).stdout
    return {Path(path) for path in re.findall(r"^\t(?:\S+ => )?(/\S+) \(0x", said, re.MULTILINE)}


def place(root: Path, path: Path) -> None:
    """A copy of a file of this machine at its own place, links followed."""
    target = inside(root, path)
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(path, target)


def inside(root: Path, path: Path) -> Path:
    """Where a path of this machine is below a root, whose /lib and /bin are links into /usr."""
    return root / (path.parent.resolve() / path.name).relative_to("/")
