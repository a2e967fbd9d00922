"""When there is news for somebody: when the findings that count are others than those that were told last."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from reconciler.core.drift.finding import Finding, worst_first
from reconciler.core.drift.past import still_known
from reconciler.core.drift.report import Report

SCHEMA = "fleet.drift-told/1"


@dataclass(frozen=True)
class News:
    """What is to be told: the findings that count, the worst first, and which of them are new; none: all is well
    again. `known`: what is known when it was told, addresses by id."""

    findings: tuple[Finding, ...]
    new: frozenset[str]
    known: Mapping[str, str]


def news(report: Report, counted: Sequence[Finding], told: Mapping[str, str] | None) -> News | None:
    """What there is to tell somebody who was `told` of these findings last (None: nobody knows, or of none).

    Nothing when they are the same, whatever their order, age and figures; nor while those that are missing may only be
    out of sight.
    """
    before = told or {}
    seen = {item.id: item.address for item in counted}
    known = {**still_known(report, before), **seen}
    if known.keys() == before.keys():
        return None
    return News(worst_first(counted), frozenset(seen.keys() - before.keys()), known)


def told_text(known: Mapping[str, str]) -> str:
    """For the state."""
    return json.dumps({"schema": SCHEMA, "known": dict(known)}, sort_keys=True, separators=(",", ":"))


def told_in(text: str | None) -> dict[str, str] | None:
    """From the state; None for what nobody, or another version of the tool, has written."""
    try:
        row = json.loads(text or "")
        return {str(key): str(address) for key, address in row["known"].items()} if row["schema"] == SCHEMA else None
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
