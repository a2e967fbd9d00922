"""Drift findings as text, JSON and Markdown."""

import json
from collections.abc import Sequence

from reconciler.core.canonical import jsonable
from reconciler.core.drift import Finding
from reconciler.views import markdown
from reconciler.views.words import count, one_line, shortened

SCHEMA = "fleet.drift/1"
CELL = 300
"""Characters of one value in the table."""


def drift_text(fleet: str, findings: Sequence[Finding]) -> str:
    """One finding a paragraph."""
    lines = [f"fleet {one_line(fleet)} · {count(len(findings), 'finding')}"]
    for item in findings:
        told = [
            f"{item.kind} {item.address}: {item.field}  [{item.id}]",
            f"    expected  {item.expected}",
            f"    found     {item.found}",
            *([f"    since     {item.since[:19]}Z"] if item.since and item.since[:19] not in item.found else []),
            f"    apply     {item.remedy}",
        ]
        lines += ["", *(one_line(line) for line in told)]
    return "\n".join(lines) + "\n"


def drift_json(fleet: str, findings: Sequence[Finding]) -> str:
    """A versioned document."""
    rows = [{"id": item.id, **jsonable(item)} for item in findings]
    return json.dumps({"schema": SCHEMA, "fleet": fleet, "findings": rows}, indent=2, ensure_ascii=False) + "\n"


def drift_markdown(fleet: str, findings: Sequence[Finding]) -> str:
    """A table for an issue or a mail."""
    lines = [f"### fleet drift: {markdown.cell(fleet)}", "", count(len(findings), "finding"), ""]
    if findings:
        lines += ["| class | where | field | expected | found | `fleet apply` would |", "|---|---|---|---|---|---|"]
    lines += [f"| {' | '.join(_row(item))} |" for item in findings]
    return "\n".join(lines) + "\n"


def _row(item: Finding) -> list[str]:
    values = (item.address, item.field, shortened(item.expected, CELL), shortened(item.found, CELL))
    return [item.kind, *(markdown.code(text) for text in values), markdown.cell(shortened(item.remedy, CELL))]
