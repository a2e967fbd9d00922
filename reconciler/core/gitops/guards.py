"""What a run of the agent may stop: so many lanes at most, and no protected one outside of a window."""

from collections.abc import Collection, Iterable
from fnmatch import fnmatchcase

from reconciler.core.plan import Kind, Plan

DARK_BY_ITSELF = frozenset({Kind.REPLACE, Kind.STOP})
"""The gang itself serves until then. One that is repaired or booted does not."""


def stopped(plan: Plan, gangs: Collection[str]) -> tuple[str, ...]:
    """The gangs that stop answering when the part of the plan about `gangs` is carried out."""
    found: set[str] = set()
    for change in plan.changes:
        if change.gang in gangs:
            found |= {change.gang} if change.kind in DARK_BY_ITSELF else set()
            found |= {gang for gang in change.dark if gang != change.gang}
    return tuple(sorted(found))


def protected(gangs: Iterable[str], patterns: Iterable[str]) -> tuple[str, ...]:
    """Those whose lane, or whole address, one of the patterns names."""
    patterns = tuple(patterns)
    return tuple(gang for gang in gangs if any(_named(gang, pattern) for pattern in patterns))


def _named(gang: str, pattern: str) -> bool:
    return fnmatchcase(gang, pattern) or fnmatchcase(gang.rpartition("/")[2], pattern)
