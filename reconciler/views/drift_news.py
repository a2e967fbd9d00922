"""News of drift as a short message: plain text for a phone, the worst first."""

from collections.abc import Mapping

from reconciler.core.drift.finding import Finding, Severity
from reconciler.core.drift.news import News
from reconciler.views.words import count, one_line, shortened

LINES = 10
"""So many findings are told; of the rest, how many they are."""

LINE = 200
"""Characters of one finding."""

LEVELS: Mapping[Severity, str] = {Severity.OUTAGE: "failure", Severity.DEGRADED: "warning", Severity.NOTICE: "info"}
"""What services call a severity: some colour a message by it, a pager decides whom it wakes."""


def news_level(news: News) -> str:
    """How bad it is, in a word of apprise: as the worst finding."""
    if not news.findings:
        return "info" if news.known else "success"
    return LEVELS[news.findings[0].severity]


def news_title(fleet: str, news: News) -> str:
    """One line: how many findings there are, how bad, and how many of them are new."""
    name = one_line(fleet)
    if not news.findings:
        return f"fleet {name}: {'nothing else is found' if news.known else 'all is as wanted again'}"
    parts = [count(len(news.findings), "finding")]
    outages = sum(item.severity is Severity.OUTAGE for item in news.findings)
    parts += [count(outages, "outage")] if outages else []
    parts += [f"{len(news.new)} new"] if news.new else ["fewer than before"]
    return f"fleet {name}: {', '.join(parts)}"


def news_body(news: News) -> str:
    """A line a finding; new ones are marked."""
    lines = [_line(item, is_new=item.id in news.new) for item in news.findings[:LINES]]
    more = len(news.findings) - LINES
    lines += [f"and {more} more"] if more > 0 else []
    unseen = len(news.known) - len({item.id for item in news.findings})
    lines += [f"{count(unseen, 'earlier finding')} could not be looked at"] if unseen > 0 else []
    return "\n".join(lines or ["`fleet drift` finds nothing any more."])


def _line(item: Finding, *, is_new: bool) -> str:
    mark = "new " if is_new else ""
    told = f"{mark}{item.severity}: {item.address} {item.field}: {item.found} (expected {item.expected})"
    return shortened(one_line(told), LINE)
