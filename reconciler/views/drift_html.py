"""A drift report as one HTML page that needs no network: style, script and drawings are in it, every value is escaped.

The page allows nothing but its own style and script, by their hashes, so that even a value that got around the
escaping could load and run nothing. The template and both files are in `page/` beside this module.
"""

import base64
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from reconciler.core.drift import Finding, Report, Severity, worst_first
from reconciler.core.drift.failing import ANY, FailOn, exit_of
from reconciler.core.exits import Exit
from reconciler.views import drift_drawn, drift_words
from reconciler.views.words import count, one_line

TONES = {Severity.OUTAGE: "bad", Severity.DEGRADED: "warn", Severity.NOTICE: "note"}
"""How the page draws a severity."""


def drift_html(report: Report, counting: FailOn = ANY) -> str:
    """The page. `counting`: which findings count for the exit code that it tells.

    Without scripts all findings are shown, and times are in UTC.
    """
    return _environment().get_template("page.html.jinja").render(_values(report, exit_of(report, counting)))


@cache
def _environment() -> Environment:
    """Templates with every value escaped, and the texts that are put in as they are."""
    made = Environment(
        loader=PackageLoader("reconciler.views", "page"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_printable,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["findings"] = lambda number: count(number, "finding")
    made.filters["nodes"] = lambda number: count(number, "node")
    for name, file in (("style", "page.css"), ("script", "page.js")):
        text = made.get_template(file).render()
        made.globals |= {name: Markup(text), f"{name}_hash": _hash(text)}  # noqa: S704 - both are files of ours
    return made


def _hash(text: str) -> str:
    """As a Content-Security-Policy wants it."""
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _printable(value: object) -> object:
    """Every text that the page prints: what could turn the direction of writing, or is no character, is spelled out."""
    return one_line(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _values(report: Report, code: Exit) -> dict[str, Any]:
    severities = drift_words.by_severity(report.findings)
    return {
        "report": report,
        "at": drift_words.utc(report.at_s),
        "verdict": drift_words.verdict(report),
        "tone": _tone(report),
        "exit": int(code),
        "exits": {int(code): meaning for code, meaning in drift_words.EXITS.items()},
        "exit_meaning": _meaning(report, code),
        "severities": severities,
        "severity_meaning": drift_words.SEVERITY_MEANING,
        "plural": drift_words.PLURAL,
        "tones": TONES,
        "kinds": drift_words.by_kind(report.findings),
        "kind_meaning": drift_words.MEANING,
        "suppressed": drift_words.suppressed(report),
        "cards": drift_drawn.cards(report),
        "charts": drift_drawn.charts(report),
        "moments": drift_drawn.moments(report),
        "groups": _groups(report),
        "aside": _aside(report),
    }


def _meaning(report: Report, code: Exit) -> str:
    """Of an exit code, also where there are findings that do not count for it."""
    return drift_words.EXITS[code] if code or not report.findings else "no finding that counts"


def _tone(report: Report) -> str:
    """Of the whole: an outage is bad, whatever else is a warning."""
    if any(item.severity is Severity.OUTAGE for item in report.findings):
        return "bad"
    return "warn" if exit_of(report, ANY) else "ok"


@dataclass(frozen=True)
class Group:
    """The findings of an address. `shared`: what all of them have alike, said once; empty for one alone."""

    address: str
    findings: tuple[Finding, ...]
    shared: Mapping[str, str]


def _groups(report: Report) -> tuple[Group, ...]:
    """The findings by address, each where its worst finding comes."""
    found: dict[str, list[Finding]] = {}
    for item in worst_first(report.findings):
        found.setdefault(item.address, []).append(item)
    return tuple(Group(address, tuple(items), _shared(items)) for address, items in found.items())


def _shared(items: Sequence[Finding]) -> dict[str, str]:
    values = {name: {getattr(item, name) for item in items} for name in ("since", "evidence", "remedy")}
    return {name: had.pop() for name, had in values.items() if len(items) > 1 and len(had) == 1}


def _aside(report: Report) -> Mapping[str, list[str]]:
    """What is no finding, by title; titles with nothing below them are left out."""
    status = report.status
    off = [f"{node.name}{f': {node.why}' if node.why else ''}" for node in report.nodes if node.reach == "off"]
    told = {
        "Suppressed by a rule of the spec": [
            f"{count(item.count, 'finding')}: {drift_words.rule(item.rule)}" for item in report.suppressed if item.count
        ],
        "Rules whose day has passed: they suppress nothing any more": [drift_words.rule(it) for it in report.expired],
        "Nodes that the spec says are switched off": off,
        "Held by somebody": [str(item) for item in status.holds],
        "Not tried again": [f"{item.gang}: {item}" for item in status.quarantined],
        "Containers of others": [f"{item.name} on {item.node}" for item in status.foreign],
    }
    return {title: lines for title, lines in told.items() if lines}
