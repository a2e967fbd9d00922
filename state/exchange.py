"""A whole state as JSON text, to be kept or taken to another store."""

import dataclasses
import json

from pydantic import TypeAdapter, ValidationError

from state.checks import Snapshot
from state.errors import StateError

SCHEMA = "fleet.state/1"
"""Names the shape of the text. Times are seconds since the epoch (UTC)."""

_SNAPSHOT: TypeAdapter[Snapshot] = TypeAdapter(Snapshot)


def to_json(snapshot: Snapshot) -> str:
    """The text of a snapshot: the same for equal ones."""
    return json.dumps({"schema": SCHEMA, **dataclasses.asdict(snapshot)}, indent=1, ensure_ascii=False) + "\n"


def from_json(text: str) -> Snapshot:
    """The snapshot of a text that `to_json` made, here or in another version. Raises `StateError`."""
    try:
        content = json.loads(text)
    except ValueError as error:
        raise StateError(f"what is to be imported is no JSON: {error}", _HINT) from error
    schema = content.pop("schema", None) if isinstance(content, dict) else None
    if schema != SCHEMA:
        raise StateError(f"what is to be imported has the schema {schema!r}; this version knows {SCHEMA!r}", _HINT)
    known = {field.name for field in dataclasses.fields(Snapshot)}
    if unknown := sorted(set(content) - known):
        raise StateError(f"what is to be imported has parts that are not known here: {', '.join(unknown)}", _HINT)
    try:
        return _SNAPSHOT.validate_json(json.dumps(content), strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(step) for step in first["loc"])
        raise StateError(f"what is to be imported is not a state: {place}: {first['msg'].lower()}", _HINT) from error


_HINT = "Name a file that `fleet state export` wrote, with this version of the tool or an earlier one."
