"""What a lab is made of, had before it is made: packages, binaries, images, models. All of it outlives the lab."""

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from . import disk, network, packages, record, registry
from .cache import fingerprint, source
from .config import LabConfig
from .image import ImageSet, ensure_images
from .model import ensure_models
from .record import Record
from .registry import Registry
from .runtime import ensure_runtime
from .shell import LabError, Progress

BOOT_SCRIPT = Path(__file__).with_name("node.sh")


def prepare(config: LabConfig, progress: Progress) -> tuple[Record, ImageSet]:
    """Install, fetch and build what is not there yet, and say what the lab will be."""
    progress.step("Debian packages", packages.ensure_packages)
    since = time.monotonic()
    runtime, images, models = make_artefacts()
    progress.done("Docker of the next release, engine images, models", since)
    wanted = fingerprint([BOOT_SCRIPT.read_text(), *source(disk, network)])
    port = port_of(config)
    paths = tuple(models.values())
    return Record(config, port, images.images, runtime, paths, wanted), images


def make_artefacts() -> tuple[Path, ImageSet, dict[str, Path]]:
    """All at once: most of the time goes into downloads."""
    with ThreadPoolExecutor() as pool:
        runtime, images, models = pool.submit(ensure_runtime), pool.submit(ensure_images), pool.submit(ensure_models)
    return runtime.result(), images.result(), models.result()


def port_of(config: LabConfig) -> int:
    """The port of the lab that is there, unless someone took it meanwhile, else a free one."""
    try:
        found = record.load(config.name)
    except LabError:
        found = None
    if found and Registry(config.folder / "registry", found.port).alive:
        return found.port
    return registry.free_port(found.port if found else config.favourite_port)
