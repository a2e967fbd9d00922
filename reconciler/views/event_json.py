"""Events as NDJSON: one line each."""

import json
from typing import Any

from reconciler.core.canonical import jsonable
from reconciler.core.envelope import Envelope


def event_line(envelope: Envelope) -> str:
    """The event as one line of JSON, without its line end; every field in place."""
    return json.dumps(event_value(envelope), ensure_ascii=True, separators=(",", ":"))


def event_value(envelope: Envelope) -> dict[str, Any]:
    """The event as JSON types."""
    told: dict[str, Any] = jsonable(envelope)
    return told
