"""Comparing with files that a person has read. `FLEET_GOLDEN=write` writes them anew."""

import os
from pathlib import Path

FOLDER = Path(__file__).parent / "golden"


def assert_golden(name: str, text: str) -> None:
    """The text is what the golden file holds, to the byte."""
    path = FOLDER / name
    if os.environ.get("FLEET_GOLDEN") == "write":
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == text
