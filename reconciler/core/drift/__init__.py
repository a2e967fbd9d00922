"""Drift: what the live objects are, against what is wanted. Read-only, in five classes (`Kind`).

`findings` compares; `sift` lets pass what the spec says; `Report` is the whole of one look.
"""

from reconciler.core.drift.compare import findings
from reconciler.core.drift.finding import Finding, Kind, Severity, worst_first
from reconciler.core.drift.ignores import Ignore, Suppressed, sift
from reconciler.core.drift.machines import mute_storage
from reconciler.core.drift.report import ClusterDrawn, NodeDrawn, Past, Report

__all__ = [
    "ClusterDrawn",
    "Finding",
    "Ignore",
    "Kind",
    "NodeDrawn",
    "Past",
    "Report",
    "Severity",
    "Suppressed",
    "findings",
    "mute_storage",
    "sift",
    "worst_first",
]
