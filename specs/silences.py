"""Findings of checks that a person lets pass."""

from datetime import date
from typing import Annotated

from pydantic import BeforeValidator, Field, Strict

from specs.diagnostics import refuse, wanted
from specs.fields import Line, Reason
from specs.records import Record


def _day(value: object) -> date:
    if isinstance(value, date):
        return value
    if not isinstance(value, str):
        raise wanted("a day such as 2026-12-24")
    try:
        return date.fromisoformat(value)
    except ValueError:
        raise refuse(f"'{value[:40]}' is not a day", "It is year, month and day: 2026-12-24.") from None


Day = Annotated[date, Strict(strict=False), BeforeValidator(_day)]


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
