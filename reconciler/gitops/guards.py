"""The guards of a spec as the core takes them, and what cron expressions mean on the clocks of a time zone."""

from datetime import UTC, datetime
from itertools import takewhile
from zoneinfo import ZoneInfo

from cronsim import CronSim

import specs
from reconciler.core.gitops.decision import Stop
from reconciler.core.gitops.forward import barred
from reconciler.core.gitops.memory import Suspension
from reconciler.core.gitops.settings import Heal, Settings
from reconciler.core.gitops.windows import Opening, Spans, Window, opening
from reconciler.core.plan import Plan


def settings_of(told: specs.Gitops) -> Settings:
    """What the section `gitops` of a spec says, windows apart."""
    return Settings(
        heal=Heal(told.heal),
        heal_times=told.heal_budget.times,
        heal_within_s=told.heal_budget.within,
        heal_pause_s=told.heal_budget.pause,
        stops=told.budget.stops,
        allow_empty=told.allow_empty,
        protected=told.protected,
    )


def windows_of(told: specs.Gitops) -> tuple[Window, ...]:
    """Its windows."""
    return tuple(map(window_of, told.windows))


def window_of(told: specs.Window) -> Window:
    """A window of a spec."""
    return Window(told.kind, told.cron, told.lasts, told.zone, told.reason or "")


def opening_at(told: specs.Gitops, now_s: float) -> Opening:
    """What its windows say of a moment (seconds since 1970)."""
    return opening(windows_of(told), now_s, spans)


def unattended(told: specs.Gitops, plan: Plan, suspended: Suspension | None, now_s: float) -> str:
    """Why nobody but a person may carry out this plan at `now_s` (seconds since 1970); empty when it may be."""
    found = barred(plan, settings_of(told), opening_at(told, now_s), suspended, now_s)
    if found is None:
        return ""
    if isinstance(found, Stop):
        return f"{found.summary}\n{found.hint}".rstrip()
    until = "" if found.until_s is None else f"\nuntil {datetime.fromtimestamp(found.until_s, UTC):%Y-%m-%d %H:%M} UTC"
    return f"{found.why}{until}"


def spans(window: Window, now_s: float) -> Spans:
    """The span of a window around a moment (seconds since 1970): a `Lookup`.

    A time that the clocks leave out in spring counts when they go on, one that they show twice in autumn counts once:
    as cron does (Debian's, which `cronsim` follows).
    """
    began_s = _last(window, now_s)
    ends_s = began_s + window.for_s if began_s is not None and now_s < began_s + window.for_s else None
    following = next(CronSim(window.cron, _moment(window, now_s)), None)
    return Spans(ends_s, following.timestamp() if following else None)


def _last(window: Window, now_s: float) -> float | None:
    """The last beginning that is not after `now_s`.

    Looked for backwards only roughly, then forwards from some hours before: so both directions agree on every moment,
    also around a change of the clocks.
    """
    before = CronSim(window.cron, _moment(window, now_s + 1), reverse=True)
    rough = next((item for item in before if item.timestamp() <= now_s), None)
    if rough is None:
        return None
    beginnings = CronSim(window.cron, _moment(window, rough.timestamp() - CHANGE_S))
    passed = takewhile(lambda at_s: at_s <= now_s, (item.timestamp() for item in beginnings))
    return max(passed, default=None)


CHANGE_S = 3 * 3600.0
"""No change of the clocks is larger than this."""


def _moment(window: Window, at_s: float) -> datetime:
    return datetime.fromtimestamp(at_s, UTC).astimezone(ZoneInfo(window.zone))
