"""What a policy is: an id, a question, and a pure function over a plan."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from reconciler.core.objection import Level, Objection
from reconciler.core.plan import Plan


@dataclass(frozen=True)
class PolicyContext:
    """What a policy may look at. `now_s`: seconds since 1970; `plan`: the part that would be carried out now."""

    plan: Plan
    now_s: float


@dataclass(frozen=True)
class Policy:
    """A predicate over a plan. `title` is the question it answers; one that yields nothing has nothing against it.

    `level`: how much its objections weigh unless the spec says otherwise (`policies.levels`).
    """

    id: str
    title: str
    judge: Callable[[PolicyContext], Iterable[Objection]]
    level: Level = Level.MANDATORY
