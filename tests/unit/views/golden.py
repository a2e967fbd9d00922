"""Comparing with files that a person has read. `FLEET_GOLDEN=write` writes them anew."""

import os
from pathlib import Path

FOLDER = Path(__file__).parent / "golden"


def assert_golden(name: str, text: str) -> None:
    """The text is what the golden file of the views holds, to the byte."""
    assert_golden_at(FOLDER / name, text)


def assert_golden_at(path: Path, text: str) -> None:
    """The text is what this file holds, to the byte."""
    if os.environ.get("FLEET_GOLDEN") == "write":
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    expected = path.read_text(encoding="utf-8")
    assert expected == text
