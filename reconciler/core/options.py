"""What a plan is made with, beside what is wanted and what is there."""

from dataclasses import dataclass

from reconciler.core.checks import AnyCheck


@dataclass(frozen=True)
class PlanOptions:
    """What the caller says beside the spec. `allow_empty`: a fleet without any lane is really meant.

    `today`: the day (ISO) by which silences hold or are over; empty: none holds. `checks`: those of a user's packages.
    """

    tool: str = "fleet"
    commit: str | None = None
    allow_empty: bool = False
    today: str = ""
    checks: tuple[AnyCheck, ...] = ()
