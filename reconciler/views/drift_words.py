"""What all forms of a drift report say alike: classes, severities, times, the verdict and what the exit code means."""

from collections import Counter
from collections.abc import Iterable, Mapping
from email.utils import formatdate, parsedate

from reconciler.core.drift import Finding, Ignore, Kind, Report, Severity
from reconciler.core.exits import Exit
from reconciler.core.status import Reach
from reconciler.views.words import count

MEANING: Mapping[Kind, str] = {
    Kind.INTENT: "what the spec wants is not what is placed",
    Kind.CONFIG: "a container has other settings than the spec gives it",
    Kind.IDENTITY: "an image or a model has other content than the one that was pinned",
    Kind.RUNTIME: "a rank does not live or does not answer as it should",
    Kind.HOST: "a node, or something on it, stands in the way",
}
SEVERITY_MEANING: Mapping[Severity, str] = {
    Severity.OUTAGE: "a lane does not serve",
    Severity.DEGRADED: "a lane serves, and something is wrong with it; or nobody can tell",
    Severity.NOTICE: "somebody should know",
}
PLURAL: Mapping[Severity, str] = {
    Severity.OUTAGE: "outages",
    Severity.DEGRADED: "degraded",
    Severity.NOTICE: "notices",
}
EXITS: Mapping[int, str] = {
    Exit.OK: "all is as wanted",
    Exit.CHANGES: "drift was found",
    Exit.UNREACHABLE: "not all could be looked at; what could be known is shown",
}


def utc(at_s: float) -> str:
    """Seconds since 1970 as RFC 3339 in UTC. (The mail format's functions reckon without a clock.)"""
    year, month, day, hour, minute, second, *_ = parsedate(formatdate(at_s, usegmt=True)) or (1970, 1, 1, 0, 0, 0)
    return f"{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z"


def moment(text: str) -> str:
    """RFC 3339 in UTC as people read it, "2026-11-30 16:50:46 UTC"; anything else as it is."""
    day, _, time = text.partition("T")
    return f"{day} {time[:8]} UTC" if time.endswith("Z") and len(time) >= 9 else text


def by_kind(findings: Iterable[Finding]) -> dict[Kind, int]:
    """How many there are of each class, all classes named."""
    found = Counter(item.kind for item in findings)
    return {kind: found[kind] for kind in Kind}


def by_severity(findings: Iterable[Finding]) -> dict[Severity, int]:
    """How many there are of each severity, all severities named."""
    found = Counter(item.severity for item in findings)
    return {severity: found[severity] for severity in Severity}


def told(counts: Mapping[Severity, int]) -> str:
    """ "1 outage, 2 degraded"; empty when there is none."""
    return ", ".join(f"{n} {severity if n == 1 else PLURAL[severity]}" for severity, n in counts.items() if n)


def against_before(report: Report) -> str:
    """What is new and what is gone since the report before; empty where nothing is, or where there was none."""
    parts = [f"{len(report.new)} new"] if report.new else []
    parts += [f"{report.gone} gone"] if report.gone else []
    return f"{', '.join(parts)} since the report before" if parts else ""


def suppressed(report: Report) -> int:
    """How many findings the spec's rules kept out."""
    return sum(item.count for item in report.suppressed)


def unreachable(report: Report) -> tuple[str, ...]:
    """The nodes that did not answer."""
    return tuple(node.name for node in report.nodes if node.reach == "unreachable")


def verdict(report: Report) -> str:
    """The whole report in a few short sentences."""
    lost, dark = _lost(report), _dark(report)
    if dark:
        first = "1 lane does not serve." if len(dark) == 1 else f"{len(dark)} lanes do not serve."
    elif any(item.severity is Severity.OUTAGE for item in report.findings):
        first = f"{count(len(report.findings), 'finding')}."
    elif report.findings:
        first = f"{count(len(report.findings), 'finding')}, none of which keeps a lane from serving."
    else:
        first = "All that could be read is as wanted." if lost else "All is as wanted."
    return f"{first} {lost}" if lost else first


def _lost(report: Report) -> str:
    """What could not be looked at, in sentences; empty when all was."""
    nodes, lanes = unreachable(report), [lane for lane in report.status.lanes if lane.reach is Reach.UNREACHABLE]
    parts = []
    if nodes:
        unknown = f"{count(len(lanes), 'lane')} {'is' if len(lanes) == 1 else 'are'} not known"
        also = f", so {unknown}" if lanes else ""
        parts.append(f"{count(len(nodes), 'node')} could not be read{also}.")
    parts += ["There was no time to see all."] if report.missing else []
    return " ".join(parts)


def _dark(report: Report) -> frozenset[str]:
    """The lanes that are known not to serve: by "cluster/lane", which addresses of lanes and of ranks begin with."""
    outages = (item.address for item in report.findings if item.severity is Severity.OUTAGE)
    return frozenset("/".join(address.split("/")[:2]) for address in outages if "/" in address)


def rule(ignore: Ignore) -> str:
    """A rule that lets findings pass, in words."""
    return f"{ignore.kind} {ignore.address} {ignore.field} until {ignore.until}: {ignore.reason}"
