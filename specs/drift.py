"""Drift that a person lets pass."""

from typing import Annotated, Literal

from pydantic import Field, Strict

from specs.days import Day
from specs.fields import Line, Reason
from specs.records import Record

DriftClass = Literal["intent", "config", "identity", "runtime", "host", "*"]


class Ignore(Record):
    """Drift that is known and let pass for a while: it is counted, and no finding of `fleet drift`."""

    kind: DriftClass = Field(alias="class", description="the class of the findings; * is any")
    address: Line = Field(
        default="*",
        description="a node, a placement as cluster/lane, or a rank as cluster/lane/RANK@NODE; * stands for any text; "
        "default: everywhere",
    )
    field: Line = Field(
        default="*", description="the field, as findings name it: restart, env.FOO, disk-low; * stands for any text"
    )
    reason: Reason = Field(description="why it may pass")
    until: Day = Field(description="the last day on which it may, for example 2026-12-24")


class Drift(Record):
    """How drift is told."""

    ignore: Annotated[tuple[Ignore, ...], Strict(strict=False)] = Field(
        default=(), description="findings of `fleet drift` that are let pass for a while"
    )
