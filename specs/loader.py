"""From files to a spec."""

from pathlib import Path

import yaml

from specs.model import Spec


def load(path: Path) -> Spec:
    """Read, validate and return the spec whose main file is `path`.

    Raises SpecErrors with every fault of every file.
    """
    return Spec.model_validate(yaml.safe_load(path.read_text()))
