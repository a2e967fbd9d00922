"""What one report leaves for the next: which findings there were, how many of each class. Kept as text in the state.

What cannot be seen now is not taken for gone: a finding on a node that does not answer stays known until its node does.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from reconciler.core.drift.finding import Kind
from reconciler.core.drift.report import Past, Report
from reconciler.core.status import Reach

SCHEMA = "fleet.drift-past/1"

HISTORY = 60
"""So many earlier reports are told of."""


@dataclass(frozen=True)
class Left:
    """What is left of a report. `known`: the address of each finding by its id, those that could not be seen then too;
    `at_s`: seconds since 1970."""

    at_s: float
    known: Mapping[str, str]
    counts: Mapping[Kind, int]
    unreachable: int


def left_of(report: Report, before: Left | None) -> Left:
    """What this report leaves, after the one `before` it."""
    seen = {item.id: item.address for item in report.findings}
    counts = {kind: sum(item.kind is kind for item in report.findings) for kind in Kind}
    unreachable = sum(node.reach == "unreachable" for node in report.nodes)
    return Left(report.at_s, {**still_known(report, before.known if before else {}), **seen}, counts, unreachable)


def still_known(report: Report, known: Mapping[str, str]) -> dict[str, str]:
    """Of earlier findings (addresses by id), those of which this report cannot tell whether they are gone."""
    is_hidden = hidden_from(report)
    return {finding: address for finding, address in known.items() if is_hidden(address)}


def hidden_from(report: Report) -> Callable[[str], bool]:
    """Whether what is at an address could not be looked at: its node does not answer, or there was no time."""
    silent = {node.name for node in report.nodes if node.reach != "reachable"}
    lanes = {lane.gang for lane in report.status.lanes if lane.reach is not Reach.REACHABLE}

    def is_hidden(address: str) -> bool:
        gang = "/".join(address.partition("@")[0].split("/")[:2])
        places = {address.rpartition("@")[2], address.partition("/")[0]}
        return bool(report.missing) or bool(places & silent) or gang in lanes

    return is_hidden


def with_past(report: Report, past: Sequence[Left]) -> Report:
    """The report with what earlier ones left, newest first: its history, and what of it is new. Without an earlier one
    nothing is called new."""
    if not past:
        return report
    ids = {item.id for item in report.findings}
    before = past[0].known
    still = still_known(report, before)
    history = tuple(Past(left.at_s, left.counts, left.unreachable) for left in reversed(past[:HISTORY]))
    gone = len(before.keys() - ids - still.keys())
    return replace(report, history=history, new=frozenset(ids - before.keys()), gone=gone)


def left_text(left: Left) -> str:
    """For the state."""
    counts = {str(kind): number for kind, number in left.counts.items()}
    row = {"schema": SCHEMA, "at_s": left.at_s, "known": dict(left.known), "counts": counts}
    return json.dumps({**row, "unreachable": left.unreachable}, sort_keys=True, separators=(",", ":"))


def left_in(text: str) -> Left | None:
    """From the state; None for what another version of the tool, or nobody, has written."""
    try:
        row = json.loads(text)
        if row["schema"] != SCHEMA:
            return None
        counts = {kind: int(row["counts"][kind]) for kind in Kind}
        known = {str(key): str(address) for key, address in row["known"].items()}
        return Left(float(row["at_s"]), known, counts, int(row["unreachable"]))
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
