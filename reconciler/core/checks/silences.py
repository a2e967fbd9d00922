"""Findings that a person has looked at, and lets pass for a while: with a reason and a last day."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

from reconciler.core.checks.check import AnyCheck
from reconciler.core.checks.finding import Finding, Result
from reconciler.core.desired import Silence


@dataclass(frozen=True)
class Silenced:
    """A finding that was let pass, and by which silence."""

    finding: Finding
    silence: Silence


@dataclass(frozen=True)
class Silences:
    """The silences of a spec on one day (`today`, ISO: 2026-12-24). Without a day none holds: it might be over."""

    items: tuple[Silence, ...]
    today: str
    guards: Mapping[str, str]

    @classmethod
    def of(cls, items: Iterable[Silence], today: str, checks: Iterable[AnyCheck]) -> "Silences":
        """`checks`: all there are, some of which may not be silenced."""
        return cls(tuple(items), today, {check.id: check.guards for check in checks})

    def over(self, finding: Finding) -> Silence | None:
        """The silence that lets it pass, None when there is none."""
        if self.guards.get(finding.check) or finding.result in {Result.OK, Result.UNKNOWN}:
            return None
        return next((item for item in self.items if self._holds(item) and _is_meant(item, finding)), None)

    def parted(self, found: Iterable[Finding]) -> tuple[tuple[Finding, ...], tuple[Silenced, ...]]:
        """What stands, and what is let pass."""
        standing: list[Finding] = []
        passed: list[Silenced] = []
        for item in found:
            silence = self.over(item)
            if silence is None:
                standing.append(item)
            else:
                passed.append(Silenced(item, silence))
        return tuple(standing), tuple(passed)

    def faults(self) -> Iterator[Finding]:
        """What is wrong with the silences themselves."""
        for item in self.items:
            meant = [check for check in self.guards if fnmatchcase(check, item.check)]
            guarded = [check for check in meant if self.guards[check]]
            if self.today and item.until < self.today:
                yield _fault(item, f"ended on {item.until}", "renew it, or take it out of the spec")
            elif not meant:
                yield _fault(item, "names no check there is", "`fleet doctor --list` names them all")
            elif guarded == meant:
                why = self.guards[guarded[0]]
                yield _fault(item, f"is about what cannot be silenced: {why}", "take it out of the spec")

    def _holds(self, item: Silence) -> bool:
        return bool(self.today) and self.today <= item.until


def _is_meant(item: Silence, finding: Finding) -> bool:
    """By the address of the placement, or by the node."""
    names = (finding.address, finding.node or "")
    return fnmatchcase(finding.check, item.check) and any(fnmatchcase(name, item.address) for name in names)


def _fault(item: Silence, what: str, mend: str) -> Finding:
    return Finding("silence", "", Result.WARN, f"the silence of {item.check} at {item.address} {what}", mend)
