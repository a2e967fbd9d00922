"""`lab.json`: what a lab is, for those who use it and for the next process that attaches to it."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from .config import LabConfig
from .image import BuiltImage
from .shell import LabError


@dataclass(frozen=True)
class Record:
    """All that is needed to find a running lab again."""

    config: LabConfig
    port: int
    images: tuple[BuiltImage, ...]
    runtime: Path
    models: tuple[Path, ...]
    fingerprint: str

    @property
    def path(self) -> Path:
        return self.config.folder / "lab.json"


def load(name: str) -> Record | None:
    """The record of a lab whose making came to its end."""
    path = LabConfig(name=name).folder / "lab.json"
    if not path.exists():
        return None
    try:
        return decode(json.loads(path.read_text())["internal"])
    except (KeyError, TypeError, ValueError) as error:
        raise LabError(f"{path} is of another version of the lab: run `down` for {name}") from error


def decode(data: Mapping[str, Any]) -> Record:
    return Record(
        config=LabConfig(**data["config"]),
        port=data["port"],
        images=tuple(BuiltImage(**image) for image in data["images"]),
        runtime=Path(data["runtime"]),
        models=tuple(Path(model) for model in data["models"]),
        fingerprint=data["fingerprint"],
    )


def encode(record: Record) -> dict[str, Any]:
    return {
        "config": asdict(record.config),
        "port": record.port,
        "images": [asdict(image) for image in record.images],
        "runtime": str(record.runtime),
        "models": [str(model) for model in record.models],
        "fingerprint": record.fingerprint,
    }


def save(record: Record, public: Mapping[str, object]) -> None:
    """Write the public facts with the record: whole or not at all, since it is the sign that the lab is made."""
    fresh = record.path.with_suffix(".new")
    fresh.write_text(json.dumps({**public, "internal": encode(record)}, indent=2) + "\n")
    fresh.rename(record.path)
