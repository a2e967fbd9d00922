"""What plans must not do, whatever the spec makes them want: policies and how much each weighs."""

import re
from pathlib import PurePosixPath
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, Strict, WithJsonSchema

from specs.diagnostics import refuse
from specs.fields import Line
from specs.gitops import Window
from specs.records import Record

Level = Literal["advisory", "mandatory"]
_ID = r"^\S+$"
LEVEL = "mandatory keeps `fleet apply` from beginning (exit 3), advisory is only shown"
LANES = "lanes, or placements as cluster/lane, by name; * stands for any text"

Patterns = Annotated[tuple[Line, ...], Strict(strict=False), Field(min_length=1)]


def _python_file(text: str) -> str:
    path = PurePosixPath(text)
    if path.is_absolute() or ".." in path.parts or path.suffix != ".py":
        why = "It lies in the folder of the spec, or below it."
        raise refuse(f"'{text[:80]}' is not a Python file beside the spec", why, "write for example policies/ours.py")
    return text


def _policy(text: str) -> str:
    if re.fullmatch(_ID, text):
        return text
    raise refuse(f"'{text[:80]}' is not the id of a policy", "It has no blanks.")


PolicyId = Annotated[str, AfterValidator(_policy), WithJsonSchema({"type": "string", "pattern": _ID})]
PythonFile = Annotated[str, AfterValidator(_python_file)]


class Pinned(Record):
    """Lanes that boot run an image of a registry, by digest, and no local build."""

    lanes: Patterns = Field(default=("*",), description=f"of which it is asked: {LANES}")
    level: Level = Field(default="mandatory", description=LEVEL)


class Protected(Record):
    """Lanes that are stopped only in their windows."""

    lanes: Patterns = Field(description=f"which: {LANES}")
    windows: Annotated[tuple[Window, ...], Strict(strict=False)] = Field(
        default=(), description="when they may stop; without any: never, by this spec"
    )
    level: Level = Field(default="mandatory", description=LEVEL)


class Budget(Record):
    """How many lanes one run may stop."""

    stops: int = Field(ge=0, le=1000, description="so many lanes may go dark in one run")
    level: Level = Field(default="mandatory", description=LEVEL)


class Policies(Record):
    """What plans are held against before anything is carried out."""

    pinned: Pinned | None = Field(default=None, description="refuse local builds; default: not asked")
    protected: Annotated[tuple[Protected, ...], Strict(strict=False)] = Field(
        default=(), description="lanes that are stopped only in their windows"
    )
    budget: Budget | None = Field(default=None, description="a limit on stops; default: none")
    files: Annotated[tuple[PythonFile, ...], Strict(strict=False)] = Field(
        default=(), description="Python files with policies of your own, relative to the main file"
    )
    levels: dict[PolicyId, Level] = Field(
        default_factory=dict,
        description="how much policies of your own weigh, by id; default: what they say themselves",
    )
