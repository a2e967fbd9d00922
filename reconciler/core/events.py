"""What happened during a command that changes something, as values. Views turn them into text; nothing is decided by
them.

`KIND` is the name of a kind of event outside (`core/envelope.py`). Names are stable: programs match on them.
"""

from dataclasses import dataclass
from typing import ClassVar

from reconciler.core.leases import Holder
from reconciler.core.machine import Status
from reconciler.core.plan import Plan, Step


@dataclass(frozen=True)
class LeaseAwaited:
    """Somebody else has the lease of a node, and it is waited for."""

    KIND: ClassVar[str] = "lease.awaited"
    node: str
    holder: Holder


@dataclass(frozen=True)
class RunStarted:
    """An apply begins."""

    KIND: ClassVar[str] = "run.started"
    run_id: str
    plan: Plan


@dataclass(frozen=True)
class StepStarted:
    """A step begins."""

    KIND: ClassVar[str] = "step.started"
    step: Step


@dataclass(frozen=True)
class StepProgress:
    """News of a running step. Bytes are set for transfers only; `total_bytes` is None while unknown."""

    KIND: ClassVar[str] = "step.progress"
    step: Step
    doing: str
    done_bytes: int | None = None
    total_bytes: int | None = None


@dataclass(frozen=True)
class StepEnded:
    """A step ended. `logs`: the last lines of the rank that the end is about, when it ended badly.

    `cause`: id of an entry of `core/causes`, when one is known. `phases`: of a boot that was proved, in order, and the
    seconds that each took.
    """

    KIND: ClassVar[str] = "step.ended"
    step: Step
    status: Status
    detail: str
    seconds: float
    logs: tuple[str, ...] = ()
    cause: str = ""
    phases: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True)
class Interrupted:
    """A person or the system asked to stop; `waiting` are the steps that still ran."""

    KIND: ClassVar[str] = "run.interrupted"
    waiting: tuple[Step, ...]


@dataclass(frozen=True)
class RunEnded:
    """The apply is over. `exit_code` as in the table of `reconciler.core.outcome`."""

    KIND: ClassVar[str] = "run.ended"
    run_id: str
    exit_code: int
    summary: str


@dataclass(frozen=True)
class HookEnded:
    """A hook was called for a placement. `detail`: why it did not end well, or the end of what it said."""

    KIND: ClassVar[str] = "hook.ended"
    hook: str
    placement: str
    ok: bool
    detail: str
    seconds: float


@dataclass(frozen=True)
class HoldPlaced:
    """A person said "hands off". `until_s`: seconds since 1970; None: until it is released."""

    KIND: ClassVar[str] = "hold.placed"
    id: str
    what: str
    name: str
    owner: str
    reason: str
    until_s: float | None


@dataclass(frozen=True)
class HoldReleased:
    """A hold was ended by a person."""

    KIND: ClassVar[str] = "hold.released"
    id: str
    what: str
    name: str
    owner: str


@dataclass(frozen=True)
class LeaseBroken:
    """The lease of a node was ended, with the session of whoever had it."""

    KIND: ClassVar[str] = "lease.broken"
    node: str
    holder: Holder


@dataclass(frozen=True)
class ImagesCollected:
    """Images were removed, from nodes and from the vault. `freed_bytes`: by what nodes and vault say."""

    KIND: ClassVar[str] = "images.collected"
    removed: int
    failed: int
    freed_bytes: int


@dataclass(frozen=True)
class ImagePinned:
    """What an image is was written down: what is `written` in the spec means this `reference`."""

    KIND: ClassVar[str] = "image.pinned"
    written: str
    reference: str


@dataclass(frozen=True)
class StateImported:
    """What an export had was recorded here."""

    KIND: ClassVar[str] = "state.imported"
    place: str
    runs: int
    revisions: int


Event = LeaseAwaited | RunStarted | StepStarted | StepProgress | StepEnded | HookEnded | Interrupted | RunEnded
"""What an apply tells as it goes."""

Act = HoldPlaced | HoldReleased | LeaseBroken | ImagesCollected | ImagePinned | StateImported
"""What a command that changes something by itself tells when it has."""
