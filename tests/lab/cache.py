"""Built artefacts, kept between labs: made in a temporary folder, moved into place whole, never half there."""

import fcntl
import hashlib
import json
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

from .config import cache_dir
from .shell import LabError


def source(*modules: ModuleType) -> list[str]:
    """The text of modules, as part of a recipe: what is built by other code is another artefact."""
    return [Path(str(module.__file__)).read_text() for module in modules]


def fingerprint(recipe: object) -> str:
    """The key of an artefact: another recipe is another folder, so nothing is ever stale."""
    return hashlib.sha256(json.dumps(recipe, sort_keys=True).encode()).hexdigest()[:12]


@contextmanager
def locked(name: str, *, wait: bool = True) -> Iterator[None]:
    """One process at a time: two labs may come up at once."""
    folder = cache_dir() / "locks"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / name).open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError as error:
            raise LabError(f"{name}: in use by another process") from error
        yield


def artefact(kind: str, recipe: object, build: Callable[[Path], None]) -> Path:
    """The folder of a built thing; built once."""
    place = cache_dir() / kind / fingerprint(recipe)
    with locked(f"{kind}-{place.name}"):
        if not place.exists():
            place.parent.mkdir(parents=True, exist_ok=True)
            build_into(place, build)
    return place


def build_into(place: Path, build: Callable[[Path], None]) -> None:
    for half_done in place.parent.glob(f".{place.name}-*"):  # of a run that was killed; we hold the lock
        shutil.rmtree(half_done)
    work = Path(tempfile.mkdtemp(prefix=f".{place.name}-", dir=place.parent))
    try:
        work.chmod(0o755)
        build(work)
        work.rename(place)
    finally:
        shutil.rmtree(work, ignore_errors=True)
