"""From JSON text back to the frozen values of the core: the other way of `plan_json` and of canonical JSON.

Strict: a wrong type, an unknown key, a missing field is an error that names its place. Fields that canonical JSON
leaves out are unset again.
"""

import json
from functools import cache
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from reconciler.core.canonical import jsonable

T = TypeVar("T")


class DecodeError(ValueError):
    """The text is not a value of this kind: what is wrong with it, and where."""


def decoded(kind: type[T], text: str) -> T:
    """The value of this dataclass that its JSON or canonical JSON is. Raises `DecodeError`."""
    try:
        value: T = _adapter(kind).validate_json(text, strict=True)  # type: ignore[arg-type] # classes are hashable
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        raise DecodeError(_told(kind, _place(first["loc"]), first["msg"])) from None
    unknown = _unknown(json.loads(text), jsonable(value), "")
    if unknown:
        raise DecodeError(_told(kind, unknown, "no such field is known"))
    return value


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def _place(path: tuple[int | str, ...]) -> str:
    return ".".join(str(part) for part in path)


def _told(kind: type[Any], place: str, what: str) -> str:
    at = f" at {place}" if place else ""
    return f"not a {kind.__name__.lower()}{at}: {what[:1].lower()}{what[1:]}"


def _unknown(given: object, taken: object, place: str) -> str:
    """The place of the first thing that was given and is not in the value made of it; "" when there is none.

    Libraries ignore keys that a dataclass does not have; a field of a newer version may be the one that matters.
    """
    if isinstance(given, dict) and isinstance(taken, dict):
        pairs = [(key, item, taken.get(key, _GONE)) for key, item in given.items()]
    elif isinstance(given, list) and isinstance(taken, list):
        pairs = [(str(number), item, taken[number]) for number, item in enumerate(given)]
    else:
        return ""
    for key, item, found in pairs:
        inner = f"{place}.{key}" if place else key
        if found is _GONE:
            return inner
        deeper = _unknown(item, found, inner)
        if deeper:
            return deeper
    return ""


_GONE = object()
