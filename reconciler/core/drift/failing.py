"""Which findings are for somebody to look at, and the exit code of a report."""

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches

from reconciler.core.drift.finding import Finding, Kind, Severity
from reconciler.core.drift.report import Report
from reconciler.core.exits import Exit


@dataclass(frozen=True)
class FailOn:
    """The findings that count: those of some classes, and those that are as bad as this or worse."""

    kinds: frozenset[Kind]
    severity: Severity | None = None

    def counts(self, finding: Finding) -> bool:
        """Whether somebody has to look at it."""
        order = list(Severity)
        is_bad = self.severity is not None and order.index(finding.severity) <= order.index(self.severity)
        return is_bad or finding.kind in self.kinds

    def counted(self, findings: Iterable[Finding]) -> tuple[Finding, ...]:
        """Those that count, in their order."""
        return tuple(item for item in findings if self.counts(item))


ANY = FailOn(frozenset(Kind))
"""Every finding counts."""


def fail_on(words: Iterable[str]) -> FailOn:
    """The rule of classes and severities that are named, with commas between them; of severities the mildest holds.

    Raises `ValueError`, whose text says what is wrong.
    """
    named = [word.strip() for text in words for word in text.split(",")]
    kinds, severities = {str(kind): kind for kind in Kind}, {str(item): item for item in Severity}
    for word in named:
        if word not in kinds and word not in severities:
            close = get_close_matches(word, [*kinds, *severities], 1)
            hint = f"did you mean {close[0]}?" if close else f"name some of {', '.join([*kinds, *severities])}"
            raise ValueError(f"{word!r} is neither a class of findings nor a severity: {hint}")
    if not named:
        return ANY
    mildest = max((severities[word] for word in named if word in severities), key=list(Severity).index, default=None)
    return FailOn(frozenset(kinds[word] for word in named if word in kinds), mildest)


def exit_of(report: Report, rule: FailOn) -> Exit:
    """4 where something could not be looked at, whatever else was found: what was to count may be there. Else 2 for
    findings that count."""
    if report.missing or any(node.reach == "unreachable" for node in report.nodes):
        return Exit.UNREACHABLE
    return Exit.CHANGES if rule.counted(report.findings) else Exit.OK
