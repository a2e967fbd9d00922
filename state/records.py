"""What is written down: runs, the journal of their effects, and the revisions they proved.

Times are seconds since the epoch (UTC), given by the caller: nothing in this package reads a clock.
"""

from dataclasses import dataclass


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
    """One applied and proved state of one gang. `boot_s`: seconds from the first start to the passed health gate."""

    gang: str
    number: int
    fingerprint: str
    run_id: str
    confirmed_at: float
    boot_s: float
