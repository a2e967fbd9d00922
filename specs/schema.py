"""The JSON Schema of a spec file, for editors and for checks outside of fleet."""

from typing import Any

from specs.model import Spec

DIALECT = "https://json-schema.org/draft/2020-12/schema"

_INCLUDE = {
    "title": "Include",
    "description": "files to read as well: paths or globs, relative to this file, e.g. lanes/*.yaml",
    "type": "array",
    "items": {"type": "string", "minLength": 1, "pattern": "^[^/~]"},
}


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a spec file, the main one or an included one.

    It knows the keys, types, ranges and defaults; `load` also checks what holds between objects.
    """
    schema = Spec.model_json_schema(mode="validation")
    schema["title"] = "A fleet spec"
    schema["description"] = "What shall run on a fleet of GPU nodes."
    schema["properties"] = {"include": _INCLUDE, **schema["properties"]}
    # Only the main file names the fleet, and an editor cannot know which file that is.
    del schema["required"]
    _close(schema)
    return {"$schema": DIALECT, **schema}


def _close(schema: object) -> None:
    """Refuse keys that match none of an object's patterns, everywhere in the schema."""
    if isinstance(schema, dict):
        if "patternProperties" in schema:
            schema["additionalProperties"] = False
        for part in schema.values():
            _close(part)
    elif isinstance(schema, list):
        for part in schema:
            _close(part)
