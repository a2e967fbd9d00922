"""Drift findings as text, JSON and Markdown."""

import json
from collections.abc import Sequence

from reconciler.core.canonical import jsonable
from reconciler.core.drift import Finding
from reconciler.views import markdown
from reconciler.views.words import count

SCHEMA = "fleet.drift/1"


def drift_text(fleet: str, findings: Sequence[Finding]) -> str:
    """One finding a paragraph."""
    lines = [f"fleet {fleet} · {count(len(findings), 'finding')}"]
    for item in findings:
        since = f" since {item.since[:19]}Z" if item.since else ""
        lines += [
            "",
            f"{item.kind} {item.address}: {item.field}  [{item.id}]",
            f"    expected  {item.expected}",
            f"    found     {item.found}{since}",
            f"    apply     {item.remedy}",
        ]
    return "\n".join(lines) + "\n"


def drift_json(fleet: str, findings: Sequence[Finding]) -> str:
    """A versioned document."""
    rows = [{"id": item.id, **jsonable(item)} for item in findings]
    return json.dumps({"schema": SCHEMA, "fleet": fleet, "findings": rows}, indent=2, ensure_ascii=False) + "\n"


def drift_markdown(fleet: str, findings: Sequence[Finding]) -> str:
    """A table for an issue or a mail."""
    lines = [f"### fleet drift: {fleet}", "", count(len(findings), "finding"), ""]
    if findings:
        lines += ["| class | where | field | expected | found | `fleet apply` would |", "|---|---|---|---|---|---|"]
    lines += [f"| {' | '.join(_row(item))} |" for item in findings]
    return "\n".join(lines) + "\n"


def _row(item: Finding) -> list[str]:
    cells = [item.kind, item.address, item.field, item.expected, item.found, item.remedy]
    return [markdown.cell(item) for item in cells]
