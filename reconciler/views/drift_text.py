"""A drift report as text: worst first, by class and then by address."""

from collections.abc import Iterable, Iterator

from reconciler.core.drift import Finding, Kind, Report, worst_first
from reconciler.views import drift_words as words
from reconciler.views.words import count, one_line


def drift_text(report: Report) -> str:
    """The whole report, what a person who sees it for the first time understands."""
    return "".join(f"{one_line(line)}\n" for line in _lines(report))


def _lines(report: Report) -> Iterator[str]:
    how = words.told(words.by_severity(report.findings))
    parts = [f"{count(len(report.findings), 'finding')}{f': {how}' if how else ''}", words.against_before(report)]
    yield " · ".join(filter(None, (f"fleet {report.fleet}", *parts)))
    commit = f" · commit {report.commit[:12]}" if report.commit else ""
    yield f"{words.verdict(report)} Looked at {words.moment(words.utc(report.at_s))}{commit}"
    for kind, addresses in grouped(worst_first(report.findings)).items():
        yield ""
        yield f"{kind}: {words.MEANING[kind]}"
        for address, items in addresses.items():
            yield f"  {address}"
            for item in items:
                yield from _finding(item, is_new=item.id in report.new)
    yield from _rest(report)


def grouped(findings: Iterable[Finding]) -> dict[Kind, dict[str, list[Finding]]]:
    """By class and address; each comes where its first finding comes."""
    found: dict[Kind, dict[str, list[Finding]]] = {}
    for item in findings:
        found.setdefault(item.kind, {}).setdefault(item.address, []).append(item)
    return found


def _finding(item: Finding, *, is_new: bool) -> Iterator[str]:
    yield f"    {item.severity}  {item.field}  [{item.id}]{'  new' if is_new else ''}"
    yield f"      expected  {item.expected}"
    yield f"      found     {item.found}"
    if item.since:
        yield f"      since     {words.moment(item.since)}"
    if item.evidence:
        yield f"      seen by   {item.evidence}"
    yield f"      apply     {item.remedy}"


def _rest(report: Report) -> Iterator[str]:
    """What is no finding: nodes that were not read, and what the spec's rules keep out."""
    off = [node.name for node in report.nodes if node.reach == "off"]
    lost = [node for node in report.nodes if node.reach == "unreachable"]
    hidden = [item for item in report.suppressed if item.count]
    if off or lost or hidden or report.expired or report.missing:
        yield ""
    for what in report.missing:
        yield f"not seen, there was no time: {what}"
    for node in lost:
        yield f"not read: {node.name}{f' ({node.why})' if node.why else ''}"
    if off:
        yield f"switched off, as the spec says: {' '.join(off)}"
    for item in hidden:
        yield f"suppressed: {count(item.count, 'finding')} by {words.rule(item.rule)}"
    for rule in report.expired:
        yield f"expired, suppresses nothing any more: {words.rule(rule)}"
