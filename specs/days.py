"""Days, as people write them: 2026-12-24."""

from datetime import date
from typing import Annotated

from pydantic import BeforeValidator, Strict

from specs.diagnostics import refuse, wanted


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
