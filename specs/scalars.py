"""Scalars of the YAML 1.2 core schema, and the source text where a value must stay as written."""

import re
from collections.abc import Mapping as MappingType
from contextlib import suppress
from enum import Enum, auto
from pathlib import Path

from specs.diagnostics import Diagnostic
from specs.tree import Mapping, Scalar, Sequence, Tree

MAX_DIGITS = 40  # of a whole number; no field and no engine takes more

_NULLS = frozenset({"", "~", "null", "Null", "NULL"})
_BOOLS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_INT = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_SPECIAL_FLOAT = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_LEADING_ZERO = re.compile(r"[-+]?0[0-9]+")

Plain = None | bool | int | float | str


class Mode(Enum):
    """What becomes of a scalar."""

    CORE = auto()
    """null, true, false, a number, or text, by the core schema."""
    TEXT = auto()
    """Text as written; only a plain null or nothing is None, so that it can be refused."""
    JSON = auto()
    """As CORE, but a number that would print differently stays the text that was written: 1e3, 0.10, .inf."""
    PATH = auto()
    """A path on the controller: relative to the file it stands in, ~ is the home folder."""


Shape = Mode | MappingType[str, "Shape"]
"""The mode of a whole tree, or the shapes of a mapping's values; "*" stands for every other key and for items."""


def is_text(plain: str) -> bool:
    """Return whether a plain scalar is text: not null, true, false or a number."""
    return plain not in _NULLS and plain not in _BOOLS and not _number(plain)


def resolve(plain: str) -> Plain:
    """Return the value of a plain scalar by the YAML 1.2 core schema."""
    if plain in _NULLS:
        return None
    if plain in _BOOLS:
        return _BOOLS[plain]
    if not _number(plain):
        return plain
    if _INT.fullmatch(plain):
        return int(plain, {"0o": 8, "0x": 16}.get(plain[:2], 10))
    return float(plain.lower().replace(".inf", "inf").replace(".nan", "nan"))


def to_data(tree: Tree, shape: Shape, faults: list[Diagnostic]) -> object:
    """Return the tree as plain data: dicts, tuples (lists where the mode is JSON) and scalars."""
    if isinstance(tree, Mapping):
        return {key: to_data(entry.value, _below(shape, key), faults) for key, entry in tree.entries.items()}
    if isinstance(tree, Sequence):
        items = (to_data(item, _below(shape, "*"), faults) for item in tree.items)
        return list(items) if shape is Mode.JSON else tuple(items)
    return _scalar(tree, shape if isinstance(shape, Mode) else Mode.CORE, faults)


def _below(shape: Shape, key: str) -> Shape:
    if isinstance(shape, Mode):
        # A list or mapping where text belongs, such as {secret: env:NAME}: its parts are ordinary values.
        return shape if shape is Mode.JSON else Mode.CORE
    return shape.get(key, shape.get("*", Mode.CORE))


def _scalar(scalar: Scalar, mode: Mode, faults: list[Diagnostic]) -> Plain:
    text = scalar.text
    if mode is Mode.PATH:
        return None if scalar.plain and text in _NULLS else _local_path(scalar)
    if not scalar.plain:
        return text
    if mode is Mode.TEXT:
        return None if text in _NULLS else text
    if fault := _refused(scalar):
        faults.append(fault)
        return None
    value = resolve(text)
    return text if mode is Mode.JSON and isinstance(value, float) and repr(value) != text else value


def _local_path(scalar: Scalar) -> str:
    path = Path(scalar.text)
    with suppress(RuntimeError):  # ~NAME of a user this machine does not have: the file will be found missing
        path = path.expanduser()
    return str(scalar.place.path.parent.absolute() / path)


def _refused(scalar: Scalar) -> Diagnostic | None:
    text = scalar.text
    if _LEADING_ZERO.fullmatch(text) and len(text) <= MAX_DIGITS:
        return Diagnostic.at(
            scalar.place,
            f"{text} can be read as a decimal number, an octal number or text",
            "YAML 1.1 and YAML 1.2 disagree on it.",
            f'write {int(text)} for the number, "{text}" for the text',
        )
    if len(text) > MAX_DIGITS and _number(text):
        return Diagnostic.at(
            scalar.place,
            "the number is too long",
            f"A number has at most {MAX_DIGITS} digits.",
            "quote it if it is text",
        )
    return None


def _number(plain: str) -> bool:
    return bool(_INT.fullmatch(plain) or _FLOAT.fullmatch(plain) or _SPECIAL_FLOAT.fullmatch(plain))
