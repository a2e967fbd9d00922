"""How one step ended."""

from dataclasses import dataclass

from reconciler.core.machine import Status


@dataclass(frozen=True)
class Outcome:
    """The status, a sentence for people, and log lines of the rank it is about when it ended badly.

    `cause`: id of an entry of `core/causes`, when one is known. `phases`: of a boot that was proved, in seconds.
    `untouched`: it failed before it did anything.
    """

    status: Status
    detail: str = ""
    logs: tuple[str, ...] = ()
    cause: str = ""
    phases: tuple[tuple[str, float], ...] = ()
    untouched: bool = False


APPLIED = Outcome(Status.APPLIED)
NOOP = Outcome(Status.NOOP)


def stale(detail: str) -> Outcome:
    """What the planner saw has changed: nothing was done."""
    return Outcome(Status.STALE, detail)


def failed(detail: str, logs: tuple[str, ...] = (), cause: str = "") -> Outcome:
    """It was tried and did not work."""
    return Outcome(Status.FAILED, detail, logs, cause)
