"""Canonical JSON and the fingerprints made of it.

A fingerprint must not change when the tool is upgraded, or healthy lanes would be restarted for nothing. So the form
is versioned, written down here and held by golden tests: keys sorted, no blanks, UTF-8, fields that are unset left out.
"""

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from typing import Any

FORM = "fleet/1"
"""Names the canonical form. It changes only together with a rule for how running ranks of the old form are seen."""


LEAVES = frozenset({str, int, float, bool})
"""Most values are one of these: asking first makes big fleets cheap."""


def plain(value: object) -> Any:
    """`value` as JSON types: dataclasses become mappings without their unset (None, empty) fields."""
    if value is None or type(value) in LEAVES:
        return value
    names = _fields(type(value))
    if names is not None:
        pairs = ((name, getattr(value, name)) for name in names)
        return {name: plain(item) for name, item in pairs if item is not None and item != ()}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        return [plain(item) for item in value]
    return value


def jsonable(value: object) -> Any:
    """`value` as JSON types with every field in place, for readers outside: unset shows as null or []."""
    if value is None or type(value) in LEAVES:
        return value
    names = _fields(type(value))
    if names is not None:
        return {name: jsonable(getattr(value, name)) for name in names}
    if isinstance(value, Mapping):
        return {str(key): jsonable(item) for key, item in sorted(value.items())}
    if isinstance(value, (tuple, list)):
        return [jsonable(item) for item in value]
    return value


_FIELDS: dict[type, tuple[str, ...] | None] = {}
"""The names of a dataclass's fields, None for any other type: a big plan has thousands of a few types."""


def _fields(kind: type) -> tuple[str, ...] | None:
    if kind not in _FIELDS:
        is_one = dataclasses.is_dataclass(kind)
        _FIELDS[kind] = tuple(field.name for field in dataclasses.fields(kind)) if is_one else None
    return _FIELDS[kind]


def canonical_json(value: object) -> str:
    """The one text of `value`: the same for equal values, whatever order they were built in."""
    return json.dumps(plain(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def fingerprint(value: object) -> str:
    """SHA-256 (64 hex digits) of the versioned canonical form of `value`."""
    return hashlib.sha256(f"{FORM}\n{canonical_json(value)}".encode()).hexdigest()
