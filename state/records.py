"""What is written down: runs, the journal of their effects, and the revisions they proved.

Times are seconds since the epoch (UTC), given by the caller: nothing in this package reads a clock.
"""

from dataclasses import dataclass
from typing import Literal

UNSTORABLE = "\0"
"""PostgreSQL keeps every character of a text but this one."""


def storable(text: str) -> str:
    """`text` as every store keeps it: what a program wrote may have zero bytes and halves of characters in it."""
    return text.encode("utf-8", "replace").decode().replace(UNSTORABLE, "\N{REPLACEMENT CHARACTER}")


@dataclass(frozen=True)
class Run:
    """One execution of a command that changes nodes.

    `ended_at` and `exit_code` are None while it runs, and for ever when it died.
    """

    id: str
    command: str
    fleet: str
    spec_fingerprint: str
    plan_id: str
    commit: str | None
    user: str
    host: str
    started_at: float
    ended_at: float | None = None
    exit_code: int | None = None


@dataclass(frozen=True)
class Intent:
    """An effect that is about to happen. `operation` is the id that lands on the node; `node` None: of a whole gang."""

    step_id: str
    gang: str
    node: str | None
    op: str
    target: str
    operation: str
    at: float

    def as_entry(self, run_id: str, sequence: int) -> "Entry":
        """Its place in the journal."""
        names = (self.step_id, self.gang, self.node, self.op, self.target, self.operation)
        return Entry(run_id, sequence, *names, intent_at=self.at)


@dataclass(frozen=True)
class Entry:
    """One effect in the journal: the intent, and the outcome once it is known.

    `sequence` counts from 1 within its run. `operation` is the id that lands on the node. `node` is None for a step
    of a whole gang. An entry without `result` is open: whether its effect happened is settled by looking at the node.
    """

    run_id: str
    sequence: int
    step_id: str
    gang: str
    node: str | None
    op: str
    target: str
    operation: str
    intent_at: float
    ended_at: float | None = None
    result: str | None = None
    detail: str = ""

    @property
    def is_open(self) -> bool:
        """Whether the outcome is not known."""
        return self.result is None


@dataclass(frozen=True)
class Revision:
    """One applied and proved state of one gang.

    `boot_s`: seconds from the first start to the passed health gate. `spec`: the gang as it was applied, as JSON text;
    empty where nobody wrote it down. `how`: "apply" or "rollback".
    """

    gang: str
    number: int
    fingerprint: str
    run_id: str
    confirmed_at: float
    boot_s: float
    spec: str = ""
    how: str = "apply"


@dataclass(frozen=True)
class Hold:
    """A person's "hands off" of something named. `expires_at` None: until it is released."""

    id: str
    kind: Literal["lane", "cluster", "node"]
    name: str
    owner: str
    reason: str
    placed_at: float
    expires_at: float | None
    released_at: float | None = None

    def is_active(self, now: float) -> bool:
        """Whether it holds at `now`."""
        return self.released_at is None and (self.expires_at is None or now < self.expires_at)


@dataclass(frozen=True)
class Quarantine:
    """A version of a gang that failed, by its fingerprint, and why: automation does not try it again."""

    gang: str
    fingerprint: str
    cause: str
    run_id: str
    at: float


@dataclass(frozen=True)
class Measure:
    """How long something took once, and under what it is looked for: image (by digest), model, class of node.

    `kind`: "pull", "preflight", "stop", "room" or "boot" (from the first start to the passed gate), or "boot:" and a
    phase of it. `node` is empty for what is of a whole gang. `size_bytes`: what a pull moved; None where not known.
    """

    kind: str
    gang: str
    node: str
    image: str
    model: str
    node_class: str
    seconds: float
    size_bytes: int | None
    run_id: str
    at: float


@dataclass(frozen=True)
class PastReport:
    """A drift report as it was given, as JSON text."""

    at: float
    text: str


@dataclass(frozen=True)
class Memory:
    """A small JSON document under a name: what a program that comes back wants to find again."""

    name: str
    text: str


@dataclass(frozen=True)
class PlanClaim:
    """A saved plan, by its id, and the one run that may carry it out."""

    saved_id: str
    run_id: str
    at: float
