"""What the agent that follows a branch tells, beside what each of its applies does. As `reconciler.core.events`."""

from dataclasses import dataclass
from typing import ClassVar

from reconciler.core.plan import Change


@dataclass(frozen=True)
class CommitSeen:
    """A new commit is at the tip of the branch."""

    KIND: ClassVar[str] = "gitops.commit"
    commit: str
    subject: str


@dataclass(frozen=True)
class CommitPlanned:
    """The fleet was looked at for a commit: what it would change."""

    KIND: ClassVar[str] = "gitops.planned"
    commit: str
    plan_id: str
    steps: int
    changes: tuple[Change, ...]


@dataclass(frozen=True)
class Attempted:
    """A commit is about to be carried out: these placements."""

    KIND: ClassVar[str] = "gitops.applying"
    commit: str
    gangs: tuple[str, ...]


@dataclass(frozen=True)
class AttemptEnded:
    """That is over. `outcome`: as `reconciler.core.gitops.memory.Outcome`; `run` is empty when no run began."""

    KIND: ClassVar[str] = "gitops.applied"
    commit: str
    outcome: str
    exit_code: int
    summary: str
    run: str


@dataclass(frozen=True)
class Superseded:
    """A newer commit interrupts what is carried out."""

    KIND: ClassVar[str] = "gitops.superseded"
    commit: str
    by: str


@dataclass(frozen=True)
class HealBegun:
    """Placements that drifted are about to be repaired, as the good commit has them."""

    KIND: ClassVar[str] = "gitops.healing"
    commit: str
    gangs: tuple[str, ...]


@dataclass(frozen=True)
class HealEnded:
    """That is over."""

    KIND: ClassVar[str] = "gitops.healed"
    commit: str
    gangs: tuple[str, ...]
    ok: bool
    summary: str
    run: str


@dataclass(frozen=True)
class GaveUp:
    """A placement is not repaired any more: a person has to look."""

    KIND: ClassVar[str] = "gitops.gave_up"
    gang: str
    why: str


@dataclass(frozen=True)
class Blocked:
    """Somebody has to do something before the newest commit is applied. `bar`: which rule says so."""

    KIND: ClassVar[str] = "gitops.blocked"
    commit: str
    bar: str
    summary: str
    hint: str


@dataclass(frozen=True)
class Waiting:
    """The newest commit is not applied now. `until_s`: seconds since 1970, None where nobody can tell."""

    KIND: ClassVar[str] = "gitops.waiting"
    commit: str | None
    why: str
    until_s: float | None


@dataclass(frozen=True)
class LookFailed:
    """The branch could not be fetched, or the fleet not be looked at. It is tried again."""

    KIND: ClassVar[str] = "gitops.failed"
    what: str
    summary: str


@dataclass(frozen=True)
class CommitAccepted:
    """A person lets the agent go on from a commit that does not come after the last applied one."""

    KIND: ClassVar[str] = "gitops.accepted"
    commit: str
    by: str


@dataclass(frozen=True)
class RetryAsked:
    """A person wants what failed to be tried again. `lifted`: placements that are out of quarantine."""

    KIND: ClassVar[str] = "gitops.retry"
    by: str
    lifted: tuple[str, ...]


@dataclass(frozen=True)
class AgentSuspended:
    """A person keeps the agent from changing anything. `until_s`: seconds since 1970, None until it is ended."""

    KIND: ClassVar[str] = "gitops.suspended"
    by: str
    reason: str
    until_s: float | None


@dataclass(frozen=True)
class AgentResumed:
    """A person lets the agent act again."""

    KIND: ClassVar[str] = "gitops.resumed"
    by: str


GITOPS_EVENTS: tuple[type, ...] = (
    CommitSeen,
    CommitPlanned,
    Attempted,
    AttemptEnded,
    Superseded,
    HealBegun,
    HealEnded,
    GaveUp,
    Blocked,
    Waiting,
    LookFailed,
    CommitAccepted,
    RetryAsked,
    AgentSuspended,
    AgentResumed,
)
"""Every kind, in the order of the published schema."""
