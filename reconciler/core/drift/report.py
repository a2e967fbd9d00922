"""What one look at a fleet came to: the findings, what was let pass, the fleet drawn, and how it was before."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from reconciler.core.drift.finding import Finding, Kind, worst_first
from reconciler.core.drift.ignores import Ignore, Suppressed
from reconciler.core.status import FleetStatus

__all__ = ["ClusterDrawn", "NodeDrawn", "Past", "Report", "worst_first"]

NodeReach = Literal["reachable", "unreachable", "off"]


@dataclass(frozen=True)
class ClusterDrawn:
    """A cluster with its nodes, in its own order."""

    name: str
    nodes: tuple[str, ...]


@dataclass(frozen=True)
class NodeDrawn:
    """A node and whether it answers; "off": the spec says so, and nobody asked it. `why`: the reason where it is not
    reachable."""

    name: str
    reach: NodeReach
    why: str = ""


@dataclass(frozen=True)
class Past:
    """An earlier report: when it was made (seconds since 1970), how many findings of each class, how many nodes did not
    answer."""

    at_s: float
    counts: Mapping[Kind, int]
    unreachable: int


@dataclass(frozen=True)
class Report:
    """One report. `at_s`: seconds since 1970; `spec`: fingerprint of the spec; `tool`: what made it.

    `suppressed`: by rule of the spec, those that kept nothing out too; `expired`: rules that hold no longer. `new`: ids
    that the report before did not have; `gone`: how many of its findings are no more. `history`: oldest first.
    `missing`: what there was no time to look at, in a few words each; what would be found there is not known.
    """

    fleet: str
    at_s: float
    commit: str | None
    spec: str
    tool: str
    findings: tuple[Finding, ...]
    suppressed: tuple[Suppressed, ...]
    expired: tuple[Ignore, ...]
    status: FleetStatus
    clusters: tuple[ClusterDrawn, ...]
    nodes: tuple[NodeDrawn, ...]
    history: tuple[Past, ...] = ()
    new: frozenset[str] = frozenset()
    gone: int = 0
    missing: tuple[str, ...] = ()
