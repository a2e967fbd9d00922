"""What happened during an apply, as values. Views turn them into text; nothing is decided by them."""

from dataclasses import dataclass

from reconciler.core.leases import Holder
from reconciler.core.machine import Status
from reconciler.core.plan import Plan, Step


@dataclass(frozen=True)
class LeaseAwaited:
    """Somebody else has the lease of a node, and it is waited for."""

    node: str
    holder: Holder


@dataclass(frozen=True)
class RunStarted:
    """An apply begins."""

    run_id: str
    plan: Plan


@dataclass(frozen=True)
class StepStarted:
    """A step begins."""

    step: Step


@dataclass(frozen=True)
class StepProgress:
    """News of a running step. Bytes are set for transfers only; `total_bytes` is None while unknown."""

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

    waiting: tuple[Step, ...]


@dataclass(frozen=True)
class RunEnded:
    """The apply is over. `exit_code` as in the table of `reconciler.core.outcome`."""

    run_id: str
    exit_code: int
    summary: str


Event = LeaseAwaited | RunStarted | StepStarted | StepProgress | StepEnded | Interrupted | RunEnded
