"""Rules on what the agent may do."""

from collections.abc import Iterator
from fnmatch import fnmatchcase

from specs.diagnostics import Diagnostic, did_you_mean, listing
from specs.draft import Draft
from specs.tree import Scalar, select


def protected_lanes_exist(draft: Draft) -> Iterator[Diagnostic]:
    """Every pattern of a protected lane names a lane that is defined: else it would protect nothing."""
    lanes = draft.declared.get("lanes", ())
    if not draft.complete:
        return
    for loc, entry in select(draft.tree, "gitops", "protected", "*"):
        value = entry.value
        if isinstance(value, Scalar) and not any(_names(value.text, lane) for lane in lanes):
            name = value.text.rpartition("/")[2]
            yield draft.at(
                loc,
                f"no lane is named '{value.text[:80]}'",
                f"What protects nothing is a mistake. The lanes are: {listing(lanes) or 'none'}.",
                did_you_mean(name, lanes),
            )


def _names(pattern: str, lane: str) -> bool:
    """Whether a lane can be meant, on some cluster where the pattern is of a whole address."""
    return fnmatchcase(lane, pattern.rpartition("/")[2])
