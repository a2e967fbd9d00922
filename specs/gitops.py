"""What an agent that follows a branch may do by itself, and when."""

from datetime import UTC, datetime
from typing import Annotated, Literal
from zoneinfo import ZoneInfo, available_timezones

from cronsim import CronSim, CronSimError
from pydantic import AfterValidator, Field, Strict, model_validator

from specs.diagnostics import did_you_mean, refuse
from specs.fields import Line
from specs.forge import Forge
from specs.quantities import PositiveDuration
from specs.records import Record

_EXAMPLE = "write for example `0 8 * * mon-fri`: at 8:00 from Monday to Friday"


def _cron(text: str) -> str:
    """Raises the error of a validator; also for a moment that never comes, such as February 30."""
    if len(text.split()) != 5:
        raise refuse(f"'{text[:80]}' is not a cron expression", "It is minute, hour, day, month and weekday.", _EXAMPLE)
    try:
        next(CronSim(text, datetime(2024, 1, 1, tzinfo=UTC)))
    except CronSimError as error:
        raise refuse(f"'{text[:80]}' is not a cron expression", f"{error}.", _EXAMPLE) from None
    except StopIteration:
        raise refuse(f"'{text[:80]}' never comes", "No day is in such a month.", _EXAMPLE) from None
    return text


def _zone(text: str) -> str:
    try:
        ZoneInfo(text)
    except (ValueError, OSError, KeyError):  # ZoneInfoNotFoundError is a KeyError
        why = "It is one of the IANA time zones, such as Europe/Berlin or UTC."
        raise refuse(f"no time zone is named '{text[:80]}'", why, did_you_mean(text, available_timezones())) from None
    return text


Cron = Annotated[str, AfterValidator(_cron)]
Zone = Annotated[str, AfterValidator(_zone)]


class Window(Record):
    """A time at which changes are allowed, or denied: some cron expression begins it, and it lasts for a while."""

    allow: Cron | None = Field(
        default=None, description="when it begins (minute hour day month weekday), if commits are applied only then"
    )
    deny: Cron | None = Field(default=None, description="when it begins, if nothing is changed then; deny wins")
    lasts: PositiveDuration = Field(alias="for", description="how long it is; time that passes, whatever clocks do")
    zone: Zone = Field(default="UTC", description="the time zone whose clocks are meant, for example Europe/Berlin")
    reason: Line | None = Field(default=None, description="why, for whoever has to wait for it")

    @model_validator(mode="after")
    def _is_one_kind(self) -> "Window":
        if (self.allow is None) == (self.deny is None):
            raise refuse("a window says either `allow` or `deny`", "", "write two windows where both are meant")
        return self

    @property
    def kind(self) -> Literal["allow", "deny"]:
        """Which of both it is."""
        return "deny" if self.allow is None else "allow"

    @property
    def cron(self) -> str:
        """When it begins."""
        return self.allow or self.deny or ""


class HealBudget(Record):
    """How often a lane is repaired before it is given up, loudly, until a new commit or a person comes."""

    times: int = Field(default=3, ge=1, le=100, description="so many repairs of one lane")
    within: PositiveDuration = Field(default=6 * 3600.0, description="in so long a time")
    pause: PositiveDuration = Field(
        default=60.0, description="before the second repair of a lane; it doubles each time, up to an hour"
    )


class Budget(Record):
    """How much one run of the agent may change."""

    stops: int | None = Field(
        default=None, ge=0, le=10_000, description="so many lanes that serve may stop by it; default: any number"
    )


class Gitops(Record):
    """What `fleet gitops run` may do by itself. It binds the agent, and no person's `fleet apply`."""

    heal: Literal["off", "report", "on"] = Field(
        default="off", description="what is done about a lane that drifted from what was proved: nothing, tell, repair"
    )
    heal_budget: HealBudget = Field(default=HealBudget(), description="when repairs of a lane are given up")
    budget: Budget = Field(default=Budget(), description="how much one run may stop")
    allow_empty: bool = Field(default=False, description="whether a commit that places no lane may stop all that run")
    windows: Annotated[tuple[Window, ...], Strict(strict=False)] = Field(
        default=(), description="when the agent may change the fleet; without any: always"
    )
    protected: Annotated[tuple[Line, ...], Strict(strict=False)] = Field(
        default=(),
        description="lanes that the agent stops only in a window that allows it: names, or cluster/lane; * stands for "
        "any text",
    )
    forge: Forge | None = Field(default=None, description="where commits are told what became of them")
