"""The JSON Schema of a spec, for editors."""

from typing import Any

from specs.model import Spec


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a spec file."""
    return Spec.model_json_schema()
