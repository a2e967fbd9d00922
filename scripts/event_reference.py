"""Writes docs/schemas/event-1.json, the JSON Schema of events, from their types: `make spec-reference`."""

import json
from pathlib import Path

from reconciler.views.event_schema import event_schema

PAGE = Path(__file__).parents[1] / "docs/schemas/event-1.json"


def reference() -> str:
    """The whole file."""
    return json.dumps(event_schema(), indent=2) + "\n"


if __name__ == "__main__":
    PAGE.write_text(reference(), encoding="utf-8")
