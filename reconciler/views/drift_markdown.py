"""A drift report as Markdown for an issue, a comment or a mail: it fits a forge, and is cut from the harmless end."""

from collections.abc import Iterator, Sequence

from reconciler.core.drift import Finding, Report, worst_first
from reconciler.views import drift_words as words
from reconciler.views.markdown import cell, code
from reconciler.views.words import count, shortened

BUDGET = 60_000
"""Characters. Forges refuse comments above 65,535."""
CELL = 300
"""Characters of one value in the table, before what is escaped in it."""
LISTED = 20
"""Lines of nodes, and of rules, above the table's end."""


def drift_markdown(report: Report) -> str:
    """The report as one comment of at most `BUDGET` characters: verdict, findings worst first, what was left out."""
    head = "\n".join(_head(report)) + "\n"
    foot = "".join(f"{line}\n" for line in _foot(report))
    table = _fitting(worst_first(report.findings), report.new, BUDGET - len(head) - len(foot))
    return head + table + foot


def _head(report: Report) -> Iterator[str]:
    yield f"### fleet drift: {_told(report.fleet)}"
    yield ""
    yield f"**{words.verdict(report)}**"
    yield ""
    yield count(len(report.findings), "finding")
    yield ""
    how, before = words.told(words.by_severity(report.findings)), words.against_before(report)
    commit = f"commit {code(report.commit[:12])}" if report.commit else ""
    yield " · ".join(filter(None, (how, before, f"looked at {words.moment(words.utc(report.at_s))}", commit)))


def _fitting(findings: Sequence[Finding], new: frozenset[str], room: int) -> str:
    """Whole rows while they fit, then how many there were beyond, and how bad they are."""
    if not findings:
        return ""
    heads = ("class", "where", "field", "how bad", "expected", "found", "since", "`fleet apply` would")
    lines = ["", f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
    room -= sum(len(line) + 1 for line in lines) + 200  # for the sentence on what was cut
    shown = 0
    for item in findings:
        row = f"| {' | '.join(_row(item, is_new=item.id in new))} |"
        room -= len(row) + 1
        if room < 0:
            break
        lines.append(row)
        shown += 1
    if left := findings[shown:]:
        how = words.told(words.by_severity(left))
        lines += ["", f"**{count(len(left), 'more finding')} ({how}) left out here: `fleet drift` shows all.**"]
    return "\n".join(lines) + "\n"


def _row(item: Finding, *, is_new: bool) -> list[str]:
    values = (code(shortened(text, CELL)) for text in (item.address, item.field))
    bad = f"**{item.severity}**" if item.severity == "outage" else item.severity
    return [
        item.kind,
        *values,
        f"{bad}, new" if is_new else bad,
        code(shortened(item.expected, CELL)),
        code(shortened(item.found, CELL)),
        cell(words.moment(item.since)),
        _told(item.remedy),
    ]


def _foot(report: Report) -> Iterator[str]:
    """What is no finding, in at most a few lines each."""
    unseen = (f"- **not seen**, there was no time: {_told(what)}" for what in report.missing[:LISTED])
    notes = [*unseen, *_nodes(report), *_rules(report)]
    if notes:
        yield ""
    yield from notes


def _nodes(report: Report) -> Iterator[str]:
    lost = [node for node in report.nodes if node.reach == "unreachable"]
    for node in lost[:LISTED]:
        yield f"- **not read** {code(node.name)}: {_told(node.why)}"
    if len(lost) > LISTED:
        yield f"- **not read** {count(len(lost) - LISTED, 'more node')}"
    if off := [node.name for node in report.nodes if node.reach == "off"]:
        yield f"- switched off, as the spec says: {_told(', '.join(off))}"


def _rules(report: Report) -> Iterator[str]:
    hidden = [item for item in report.suppressed if item.count]
    for item in hidden[:LISTED]:
        yield f"- suppressed: {count(item.count, 'finding')} by {_told(words.rule(item.rule))}"
    if len(hidden) > LISTED:
        rest = sum(item.count for item in hidden[LISTED:])
        yield f"- suppressed: {count(rest, 'more finding')} by {count(len(hidden) - LISTED, 'more rule')}"
    for rule in report.expired[:LISTED]:
        yield f"- expired, suppresses nothing any more: {_told(words.rule(rule))}"


def _told(text: str) -> str:
    return cell(shortened(text, CELL))
