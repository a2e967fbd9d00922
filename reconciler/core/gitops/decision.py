"""What was seen, and what can follow from it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from reconciler.core.gitops.looks import Planned
from reconciler.core.gitops.memory import NOTHING_REMEMBERED, Remembered, Suspension
from reconciler.core.gitops.settings import DEFAULTS, Settings
from reconciler.core.gitops.windows import OPEN, Opening


@dataclass(frozen=True)
class Commit:
    """The newest commit of the branch.

    `descends`: whether it is the last applied one or comes after it; None where that cannot be told. `unsigned`: why
    its signature is not accepted, None when it is, or none is asked for. `broken`: why its spec cannot be used, else
    None. `missing`: why its files are not to be had now, else None.
    """

    id: str
    descends: bool | None = None
    unsigned: str | None = None
    broken: str | None = None
    missing: str | None = None

    @property
    def is_fit(self) -> bool:
        """Whether nothing is wrong with the commit itself, as far as is known."""
        return self.descends is not False and not (self.unsigned or self.broken or self.missing)


@dataclass(frozen=True)
class Seen:
    """All that a decision rests on. `now_s`: seconds since 1970.

    `plans`: by commit, what a look at the fleet said of it; None for a commit whose files are not to be had. Decisions
    ask for what is missing by `Look`. `head` None: nothing was fetched yet.
    """

    now_s: float
    head: Commit | None
    remembered: Remembered = NOTHING_REMEMBERED
    plans: Mapping[str, Planned | None] = field(default_factory=dict)
    suspended: Suspension | None = None
    opening: Opening = OPEN
    settings: Settings = DEFAULTS


class Bar(StrEnum):
    """Why a commit is not applied, or a lane not repaired, until somebody does something."""

    NOT_FORWARD = "not-forward"
    UNSIGNED = "unsigned"
    BROKEN = "broken"
    EMPTY = "empty"
    REFUSED = "refused"
    QUARANTINED = "quarantined"
    NEEDS_A_PERSON = "needs-a-person"
    DIED = "died"
    PROTECTED = "protected"
    BUDGET = "budget"
    POLICY = "policy"


@dataclass(frozen=True)
class Look:
    """Observe, and plan for this commit, before anything else can be said."""

    commit: str


@dataclass(frozen=True)
class Apply:
    """Bring the fleet to this commit: the steps of these gangs, which are whole groups of its plan."""

    commit: str
    gangs: tuple[str, ...]


@dataclass(frozen=True)
class Adopt:
    """The fleet is this commit already: remember it as applied."""

    commit: str


@dataclass(frozen=True)
class Heal:
    """Repair these gangs as this commit has them, which they were proved to be."""

    commit: str
    gangs: tuple[str, ...]


@dataclass(frozen=True)
class GiveUp:
    """Repair these gangs no more, and say so loudly: why, by gang."""

    why: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Wait:
    """Time, or something outside, will change it. `until_s` None: not to be told when."""

    why: str
    until_s: float | None = None


@dataclass(frozen=True)
class Stop:
    """Somebody has to do something: what is in the way, and what to do."""

    bar: Bar
    summary: str
    hint: str = ""


@dataclass(frozen=True)
class Nothing:
    """There is nothing to do. `drifted`: gangs that are not as they were proved, and are left so."""

    why: str
    drifted: tuple[str, ...] = ()


Decision = Look | Apply | Adopt | Heal | GiveUp | Wait | Stop | Nothing
