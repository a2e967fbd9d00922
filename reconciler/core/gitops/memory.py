"""What the agent remembers from one look to the next, across restarts. Times are seconds since 1970."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from reconciler.core.canonical import canonical_json
from reconciler.core.decode import decoded
from reconciler.core.exits import Exit

ATTEMPTS = 50
"""So many of the last attempts, and of the last heals, are kept: more than any rule looks back."""


SUSPENDED = "gitops.suspended"
"""Under this name the recorded state has the suspension, apart from what the agent writes: people come at any time."""


def age_s(at_s: float, now_s: float) -> float:
    """How long ago something was. What is recorded of a moment ahead (the clock was set back) is as far behind: so it
    holds nothing up until a time that may be years away.
    """
    return abs(now_s - at_s)


class Outcome(StrEnum):
    """How an attempt ended."""

    BEGUN = "begun"  # it is going on, or the agent died over it
    APPLIED = "applied"
    PARTIAL = "partial"  # what could be done went well; some was held, or could not be reached
    FAILED = "failed"  # the fleet serves what it served before
    REFUSED = "refused"
    NEEDS_A_PERSON = "needs-a-person"
    INTERRUPTED = "interrupted"
    LEASE_HELD = "lease-held"

    @classmethod
    def of(cls, code: Exit, *, withheld: bool = False) -> "Outcome":
        """What an apply that ended with this exit code was. `withheld`: some of its plan was not carried out."""
        return cls.PARTIAL if code is Exit.REFUSED and withheld else OUTCOMES[code]


OUTCOMES = {
    Exit.OK: Outcome.APPLIED,
    Exit.CHANGES: Outcome.APPLIED,
    Exit.UNREACHABLE: Outcome.PARTIAL,
    Exit.REFUSED: Outcome.REFUSED,
    Exit.LEASE_HELD: Outcome.LEASE_HELD,
    Exit.UNCHANGED: Outcome.FAILED,
    Exit.ERROR: Outcome.FAILED,
    Exit.NEEDS_A_PERSON: Outcome.NEEDS_A_PERSON,
    Exit.INTERRUPTED: Outcome.INTERRUPTED,
}
"""By the exit code of the apply."""

TRIED = frozenset({Outcome.APPLIED, Outcome.PARTIAL, Outcome.FAILED, Outcome.REFUSED, Outcome.NEEDS_A_PERSON})
"""What counts as the one attempt: the others were broken off, or never began."""

BROKEN_OFF = frozenset({Outcome.INTERRUPTED, Outcome.LEASE_HELD})

BAD = frozenset({Outcome.FAILED, Outcome.NEEDS_A_PERSON})


@dataclass(frozen=True)
class Attempt:
    """A commit that was applied to what was seen (`observation`: see `looks.observation_of`), and how that ended."""

    commit: str
    observation: str
    outcome: Outcome
    at_s: float
    summary: str = ""
    run: str = ""


@dataclass(frozen=True)
class Healed:
    """A gang that was repaired, or is being repaired, and whether that went well."""

    gang: str
    at_s: float
    ok: bool


@dataclass(frozen=True)
class Proven:
    """What a gang was last seen to be in its right state: as `commit` has it, which the fleet was brought to."""

    gang: str
    fingerprint: str
    commit: str


@dataclass(frozen=True)
class GaveUp:
    """A gang that is not repaired any more until another commit is applied than `applied`, or a person says so."""

    gang: str
    applied: str | None
    why: str
    at_s: float


@dataclass(frozen=True)
class Suspension:
    """A person's "do nothing by yourself". `until_s` None: until it is ended."""

    by: str
    reason: str
    since_s: float
    until_s: float | None = None

    def holds(self, now_s: float) -> bool:
        """Whether it has not lapsed."""
        return self.until_s is None or now_s < self.until_s

    def __str__(self) -> str:
        return f"suspended by {self.by}: {self.reason}"


@dataclass(frozen=True)
class Remembered:
    """`applied`: the last commit that was tried, or found to be there; `good`: the last one that all of the fleet was.

    Both in the history of the branch: only what descends from `applied` is applied.
    """

    applied: str | None = None
    good: str | None = None
    attempts: tuple[Attempt, ...] = ()
    heals: tuple[Healed, ...] = ()
    proven: tuple[Proven, ...] = ()
    gave_up: tuple[GaveUp, ...] = ()

    def began(self, commit: str, observation: str, now_s: float) -> "Remembered":
        """Before the first effect of an apply of `commit`. Of those that were broken off only the newest is kept, so
        that they never crowd out the ones that count.
        """
        attempt = Attempt(commit, observation, Outcome.BEGUN, now_s)
        told = tuple(item for item in self.attempts if item.commit != commit or item.outcome not in BROKEN_OFF)
        return replace(self, applied=commit, attempts=(*told, attempt)[-ATTEMPTS:])

    def ended(self, outcome: Outcome, now_s: float, summary: str = "", run: str = "") -> "Remembered":
        """After it: the last attempt that was begun has this outcome."""
        last = next((item for item in reversed(self.attempts) if item.outcome is Outcome.BEGUN), None)
        if last is None:
            return self
        done = replace(last, outcome=outcome, at_s=now_s, summary=summary, run=run)
        return replace(self, attempts=tuple(done if item is last else item for item in self.attempts))

    def repairing(self, gangs: Iterable[str], now_s: float) -> "Remembered":
        """Before the first effect of a repair: one that the agent dies over counts, as one that did not go well."""
        new = tuple(Healed(gang, now_s, ok=False) for gang in gangs)
        return replace(self, heals=(*self.heals, *new)[-ATTEMPTS * max(1, len(self.proven)) :])

    def repaired(self, gangs: Collection[str], began_s: float, now_s: float, *, ok: bool | None) -> "Remembered":
        """After the repair of these gangs that began at `began_s`. `ok` None: it was broken off, and does not count."""
        left = tuple(item for item in self.heals if item.gang not in gangs or item.at_s != began_s)
        new = () if ok is None else tuple(Healed(gang, now_s, ok) for gang in gangs)
        return replace(self, heals=(*left, *new))

    def giving_up(self, why: Mapping[str, str], now_s: float) -> "Remembered":
        """With these gangs left alone from now on. `why`: by gang."""
        kept = tuple(item for item in self.gave_up if item.applied == self.applied and item.gang not in why)
        new = tuple(GaveUp(gang, self.applied, said, now_s) for gang, said in sorted(why.items()))
        return replace(self, gave_up=kept + new)

    def is_given_up(self, gang: str) -> bool:
        """Whether the gang is left alone until another commit is applied."""
        return any(item.gang == gang and item.applied == self.applied for item in self.gave_up)

    def again(self) -> "Remembered":
        """As if nothing had failed: a person wants it tried again."""
        return replace(self, attempts=(), heals=(), gave_up=())

    def proof_of(self, gang: str) -> Proven | None:
        """What the gang was last seen to be in its right state."""
        return next((item for item in self.proven if item.gang == gang), None)

    def to_json(self) -> str:
        """The one text of it."""
        return canonical_json(self)


NOTHING_REMEMBERED = Remembered()


def remembered_of(text: str | None) -> Remembered:
    """What `to_json` wrote down; of nothing: nothing. Raises `DecodeError`."""
    return NOTHING_REMEMBERED if text is None else decoded(Remembered, text)


def suspension_of(text: str | None, now_s: float) -> Suspension | None:
    """The suspension that its canonical JSON is, if it holds at `now_s`. Raises `DecodeError`."""
    found = None if text is None else decoded(Suspension, text)
    return found if found is not None and found.holds(now_s) else None
