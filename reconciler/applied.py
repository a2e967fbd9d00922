"""How an apply ended, as a value: whoever only looks does not load what applies."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from reconciler.core.machine import Status
from reconciler.core.outcome import Exit
from reconciler.core.plan import Plan

if TYPE_CHECKING:
    from reconciler.execution.runner import Failure


@dataclass(frozen=True)
class Applied:
    """How an apply ended. `unsettled` is the plan that should have been empty afterwards, when it was not.

    `sent_bytes`: bytes of images that left the controller for it.
    """

    run_id: str
    exit: Exit
    summary: str
    failures: "tuple[Failure, ...]"
    status: dict[str, Status]
    unsettled: Plan | None = None
    sent_bytes: int = 0
