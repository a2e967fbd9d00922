"""Findings that a person lets pass: by rules of the spec, each with a reason and a day on which it ends."""

from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase

from reconciler.core.desired import Ignore
from reconciler.core.drift.finding import Finding

__all__ = ["Ignore", "Sifted", "Suppressed", "sift"]


@dataclass(frozen=True)
class Suppressed:
    """A rule of the spec with how many findings it keeps out: a finding counts for the first rule that fits."""

    rule: Ignore
    count: int


@dataclass(frozen=True)
class Sifted:
    """What is left of findings, what each rule in force kept out, and the rules whose day has passed."""

    findings: tuple[Finding, ...]
    suppressed: tuple[Suppressed, ...]
    expired: tuple[Ignore, ...]


def sift(findings: Iterable[Finding], rules: tuple[Ignore, ...], today: str) -> Sifted:
    """The findings that no rule in force lets pass. `today`: ISO; a rule holds through its day `until`."""
    live = tuple(rule for rule in rules if rule.until >= today)
    counts = dict.fromkeys(live, 0)
    left = []
    for finding in findings:
        rule = next((item for item in live if _fits(item, finding)), None)
        if rule is None:
            left.append(finding)
        else:
            counts[rule] += 1
    expired = tuple(rule for rule in rules if rule.until < today)
    return Sifted(tuple(left), tuple(Suppressed(rule, count) for rule, count in counts.items()), expired)


def _fits(rule: Ignore, finding: Finding) -> bool:
    return (
        rule.kind in {finding.kind, "*"}
        and fnmatchcase(finding.address, rule.address)
        and fnmatchcase(finding.field, rule.field)
    )
