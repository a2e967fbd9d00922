"""Findings of checks that a person lets pass."""

from typing import Annotated

from pydantic import Field, Strict

from specs.days import Day
from specs.fields import Line, Reason
from specs.records import Record


class Silence(Record):
    """A finding that is known and let pass for a while: the lane boots all the same."""

    check: Line = Field(description="id of the check, as `fleet doctor --list` names it; * stands for any text")
    address: Line = Field(
        default="*", description="a node, or a placement as cluster/lane; * stands for any text; default: everywhere"
    )
    reason: Reason = Field(description="why it may pass")
    until: Day = Field(description="the last day on which it may, for example 2026-12-24")


class Checks(Record):
    """How the checks before a boot, and of `fleet doctor`, are taken."""

    silence: Annotated[tuple[Silence, ...], Strict(strict=False)] = Field(
        default=(), description="findings that are let pass for a while; what guards other people's work cannot be"
    )
