"""Faults that validation finds, in the words of the YAML they are about."""

import re
from collections.abc import Iterable, Iterator
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from specs.diagnostics import Diagnostic, did_you_mean, listing
from specs.scalars import is_text, resolve
from specs.tree import Loc, Mapping, Scalar, Sequence, Tree, find, key_place, value_place

_WANTED = {
    "string_type": "text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "tuple_type": "a list",
    "list_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "path_type": "a path",
    "finite_number": "a number that ends",
}

_BOUNDS = {
    "greater_than_equal": "must be at least {ge}",
    "greater_than": "must be more than {gt}",
    "less_than_equal": "must be at most {le}",
    "too_short": "must not be empty",
    "string_too_short": "must not be empty",
}

_MARKS = ("(text)", "(secret)", "(none)", "(switch)", "(command)", "[key]")


def explain(error: ValidationError, tree: Tree, prefix: Loc, model: type[BaseModel] | None = None) -> list[Diagnostic]:
    """Return the diagnostics of a failed validation of the value at `prefix` in `tree`, whose type is `model`."""
    found = error.errors(include_url=False, include_input=False)
    return [_explain(details, tree, prefix, model) for details in found if not _is_emptied(details, found)]


def _is_emptied(details: ErrorDetails, others: Iterable[ErrorDetails]) -> bool:
    """Whether a list is called empty only since none of its items is right: each of these has a fault of its own."""
    loc = details["loc"]
    return details["type"] == "too_short" and any(
        len(item["loc"]) > len(loc) and item["loc"][: len(loc)] == loc for item in others
    )


def dotted(loc: Loc) -> str:
    """Return a location as a reader would write it: lanes.x.mounts[0].source."""
    parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in loc)
    return "".join(parts).removeprefix(".")


def found(tree: Tree) -> str:
    """Say what a value is, in YAML's words. Text is not repeated: it may be a secret."""
    if isinstance(tree, Sequence):
        return "a list"
    if isinstance(tree, Mapping):
        return "a mapping"
    if not tree.plain or is_text(tree.text):
        return "text"
    return f"{tree.text[:40]}" if tree.text else "nothing"


def _explain(details: ErrorDetails, tree: Tree, prefix: Loc, model: type[BaseModel] | None) -> Diagnostic:
    loc = prefix + details["loc"]
    of_key = loc[-1:] == ("[key]",)
    # A validator's own marks, the branch of a union or "[key]", are no part of the path a reader knows.
    path = tuple(part for part in loc if part not in _MARKS)
    if details["type"] == "extra_forbidden":
        return _unknown_key(tree, path, _owner(model, path[len(prefix) : -1]))
    if details["type"] == "missing":
        return _missing(tree, path, _owner(model, path[len(prefix) : -1]))
    context: dict[str, Any] = details.get("ctx", {})
    path += context.get("below", ())
    place = key_place(tree, path) if of_key else value_place(tree, path)
    name = dotted(path[:-1] if of_key else path)
    if details["type"] == "refused":
        return Diagnostic.at(place, f"{name}: {context['summary']}", context["detail"], context["hint"])
    message, hint = _message(details, context, find(tree, path))
    return Diagnostic.at(place, f"{name}: {message}", hint=hint)


def _message(details: ErrorDetails, context: dict[str, Any], value: Tree) -> tuple[str, str]:
    kind = details["type"]
    want = context["what"] if kind == "wanted" else _WANTED.get(kind)
    if want is not None:
        return f"wants {want}, found {found(value)}", _advice(want, value)
    if kind in _BOUNDS:
        return _BOUNDS[kind].format_map(context), ""
    if kind == "literal_error":
        hint = did_you_mean(value.text, re.findall("'(.*?)'", context["expected"])) if isinstance(value, Scalar) else ""
        return f"must be {context['expected']}", hint
    if kind == "string_pattern_mismatch":
        return f"is not of the form {context['pattern']}", ""
    return details["msg"], ""


def _advice(want: str, value: Tree) -> str:
    """Say how to write what is wanted, where what was found comes close to it."""
    if isinstance(value, Scalar):
        if want.startswith("text") and (not value.plain or not is_text(value.text)):
            return f'write "{value.text[:40]}" for text' if value.text else 'write "" for empty text'
        if want == "a list":
            return "write - ITEM on a line of its own, or [ITEM, ITEM]"
        if want in ("a whole number", "a number") and not value.plain and _is_number(value.text):
            return "take the quotes away"
        if want == "true or false" and value.text.lower() in ("yes", "no", "on", "off"):
            return f"write {str(value.text.lower() in ('yes', 'on')).lower()}"
    return ""


def _is_number(text: str) -> bool:
    return not is_text(text) and isinstance(resolve(text), int | float)


def _unknown_key(tree: Tree, path: Loc, owner: type[BaseModel] | None) -> Diagnostic:
    known = list(_fields(owner))
    key = str(path[-1])
    return Diagnostic.at(
        key_place(tree, path),
        f"{dotted(path[:-1])}: unknown key '{key[:80]}'",
        f"The keys here are {listing(known, limit=40)}." if known else "",
        did_you_mean(key, known),
    )


def _missing(tree: Tree, path: Loc, owner: type[BaseModel] | None) -> Diagnostic:
    field = _fields(owner).get(str(path[-1]))
    detail = f"`{path[-1]}`: {field.description}." if field and field.description else ""
    return Diagnostic.at(key_place(tree, path[:-1]), f"{dotted(path[:-1])}: `{path[-1]}` is missing", detail)


def _owner(model: type[BaseModel] | None, loc: Loc) -> type[BaseModel] | None:
    """Return the model whose field the next part of `loc` would name."""
    owner = model
    for part in loc:
        if owner is not None and (field := _fields(owner).get(str(part))) is not None:
            owner = next(_models_in(field.annotation), owner)
    return owner


def _fields(owner: type[BaseModel] | None) -> dict[str, FieldInfo]:
    """The fields of a model by the keys that a spec has for them: `for` is no name in Python."""
    return {field.alias or name: field for name, field in owner.model_fields.items()} if owner else {}


def _models_in(annotation: object) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _models_in(part)
