"""When the agent may change the fleet: deny wins, and where something is allowed, only then.

What a cron expression means in a time zone is looked up by the shell (`reconciler/gitops/windows.py`): a `Lookup` tells
the span of a window that a moment is in, and when the next one begins. Moments are seconds since 1970.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

HOPS = 64
"""So many ends and beginnings are followed to say when it opens; past that it is only said that it is closed."""


@dataclass(frozen=True)
class Window:
    """A span of `for_s` seconds from each time that the cron expression names, on the clocks of `zone`."""

    kind: Literal["allow", "deny"]
    cron: str
    for_s: float
    zone: str
    reason: str = ""

    def __str__(self) -> str:
        return f"{self.reason} ({self.kind} {self.cron}, {self.zone})" if self.reason else f"{self.cron} {self.zone}"


@dataclass(frozen=True)
class Spans:
    """Around a moment: the end of the span it is in (None: it is in none), and the next beginning (None: never)."""

    ends_s: float | None
    next_s: float | None


Lookup = Callable[[Window, float], Spans]


@dataclass(frozen=True)
class Closed:
    """Why nothing may be changed now, and from when it may (None: not to be told)."""

    why: str
    until_s: float | None


@dataclass(frozen=True)
class Opening:
    """What windows say of a moment. `denied`: by a window that says so; `outside`: of all that allow.

    `is_allowed`: in a window that allows it by name, and not denied.
    """

    denied: Closed | None = None
    outside: Closed | None = None
    is_allowed: bool = False

    @property
    def closed(self) -> Closed | None:
        """Why no new commit is applied now."""
        return self.denied or self.outside


OPEN = Opening()


def opening(windows: Iterable[Window], now_s: float, look: Lookup) -> Opening:
    """What these windows say of `now_s`."""
    windows = tuple(windows)
    denies = tuple(item for item in windows if item.kind == "deny")
    allows = tuple(item for item in windows if item.kind == "allow")
    denying = next((item for item in denies if look(item, now_s).ends_s is not None), None)
    is_inside = any(look(item, now_s).ends_s is not None for item in allows)
    return Opening(
        denied=Closed(f"denied: {denying}", _free_s(denies, (), now_s, look)) if denying else None,
        outside=_outside(allows, denies, now_s, look) if allows and not is_inside else None,
        is_allowed=is_inside and denying is None,
    )


def closed(windows: Iterable[Window], now_s: float, look: Lookup) -> Closed | None:
    """Why nothing new may be done at `now_s` by these windows; None when it may."""
    return opening(windows, now_s, look).closed


def _outside(allows: tuple[Window, ...], denies: tuple[Window, ...], now_s: float, look: Lookup) -> Closed:
    told = "; ".join(str(item) for item in allows)
    return Closed(f"outside of what is allowed: {told}", _free_s(denies, allows, now_s, look))


def _free_s(denies: tuple[Window, ...], allows: tuple[Window, ...], now_s: float, look: Lookup) -> float | None:
    """The first moment from `now_s` on that is in no deny and, where there are any, in an allow."""
    at: float | None = now_s
    for _ in range(HOPS):
        if at is None:
            return None
        moment = at
        ends = [end for item in denies if (end := look(item, moment).ends_s) is not None]
        spans = [look(item, moment) for item in allows]
        if ends:
            at = max(ends)
        elif allows and all(item.ends_s is None for item in spans):
            at = min((item.next_s for item in spans if item.next_s is not None), default=None)
        else:
            return moment
    return None
