"""The JSON Schema of events, made from their types, for programs that read them."""

from typing import Any, Literal

from pydantic import TypeAdapter

from reconciler.core.envelope import SCHEMA, TOLD

_OUT: Literal["serialization"] = "serialization"
DIALECT = "https://json-schema.org/draft/2020-12/schema"


def event_schema() -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of one line of events."""
    names: list[str] = [getattr(kind, "KIND") for kind in TOLD]  # noqa: B009 - a constant that each class has
    types: list[TypeAdapter[Any]] = [TypeAdapter(kind) for kind in TOLD]
    asked = [(name, _OUT, adapter) for name, adapter in zip(names, types, strict=True)]
    found, definitions = TypeAdapter.json_schemas(asked)
    return {
        "$schema": DIALECT,
        "title": "An event of fleet",
        "description": "One line of `--events FILE`. Fields may be added within a version; none is taken away.",
        "type": "object",
        "properties": {
            "schema": {"const": SCHEMA},
            "run": {"type": "string", "description": "the run, as in `fleet history`"},
            "sequence": {"type": "integer", "minimum": 1, "description": "counts from 1 without gaps"},
            "at_s": {"type": "number", "description": "seconds since 1970"},
            "kind": {"enum": names},
            "event": {"type": "object"},
        },
        "required": ["schema", "run", "sequence", "at_s", "kind", "event"],
        "additionalProperties": False,
        "oneOf": [_kind(name, found[name, _OUT]) for name in names],
        **definitions,
    }


def _kind(name: str, event: Any) -> dict[str, Any]:
    return {"properties": {"kind": {"const": name}, "event": event}}
