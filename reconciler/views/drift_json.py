"""A drift report as a JSON document. `docs/schemas/drift-2.json` is its schema."""

import json
from typing import Any

from reconciler.core.canonical import jsonable
from reconciler.core.drift import Finding, Ignore, Kind, Report, worst_first
from reconciler.core.status import LaneStatus
from reconciler.views import drift_words as words

SCHEMA = "fleet.drift/2"


def drift_json(report: Report) -> str:
    """The document, worst findings first."""
    return json.dumps(document(report), indent=2, ensure_ascii=False) + "\n"


def document(report: Report) -> dict[str, Any]:
    """The report as JSON types. Times are RFC 3339 in UTC."""
    return {
        "schema": SCHEMA,
        "fleet": report.fleet,
        "at": words.utc(report.at_s),
        "commit": report.commit,
        "spec": report.spec,
        "tool": report.tool,
        "summary": _summary(report),
        "findings": [_finding(item, is_new=item.id in report.new) for item in worst_first(report.findings)],
        "missing": list(report.missing),
        "suppressed": [{**_rule(item.rule), "count": item.count} for item in report.suppressed],
        "expired": [_rule(item) for item in report.expired],
        "clusters": jsonable(report.clusters),
        "nodes": jsonable(report.nodes),
        "lanes": [_lane(lane) for lane in report.status.lanes],
        "history": [
            {
                "at": words.utc(past.at_s),
                "counts": {kind: past.counts.get(kind, 0) for kind in Kind},
                "unreachable": past.unreachable,
            }
            for past in report.history
        ],
    }


def _summary(report: Report) -> dict[str, Any]:
    return {
        "verdict": words.verdict(report),
        "findings": len(report.findings),
        "new": len(report.new),
        "gone": report.gone,
        "suppressed": words.suppressed(report),
        "unreachable": len(words.unreachable(report)),
        "by_class": words.by_kind(report.findings),
        "by_severity": words.by_severity(report.findings),
    }


def _finding(item: Finding, *, is_new: bool) -> dict[str, Any]:
    return {
        "id": item.id,
        "class": item.kind,
        "severity": item.severity,
        "address": item.address,
        "field": item.field,
        "expected": item.expected,
        "found": item.found,
        "since": item.since or None,
        "evidence": item.evidence,
        "remedy": item.remedy,
        "new": is_new,
    }


def _rule(ignore: Ignore) -> dict[str, str]:
    return {
        "class": ignore.kind,
        "address": ignore.address,
        "field": ignore.field,
        "reason": ignore.reason,
        "until": ignore.until,
    }


def _lane(lane: LaneStatus) -> dict[str, Any]:
    ranks = [
        {"rank": rank.rank, "node": rank.node, "sync": rank.sync, "health": rank.health, "reach": rank.reach}
        for rank in lane.ranks
    ]
    return {
        "address": lane.gang,
        "url": lane.url,
        "served_name": lane.served_name,
        "sync": lane.sync,
        "health": lane.health,
        "reach": lane.reach,
        "detail": lane.detail,
        "stand_ins": list(lane.stand_ins),
        "ranks": ranks,
    }
