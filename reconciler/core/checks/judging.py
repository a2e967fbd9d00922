"""What all checks together say of a gang, a node, or the whole fleet."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from reconciler.core.checks.case import Case, Site
from reconciler.core.checks.check import BROKEN, AnyCheck, Check, NodeCheck, Occasion, objections, of_gang, of_node
from reconciler.core.checks.finding import Finding, Result
from reconciler.core.checks.registry import BUILT_IN
from reconciler.core.checks.silences import Silenced, Silences
from reconciler.core.desired import Desired


@dataclass(frozen=True)
class Judgement:
    """Findings about one gang: what keeps it from being done, what was let pass, and what a person should know."""

    fails: tuple[Finding, ...]
    silenced: tuple[Silenced, ...]
    notices: tuple[Finding, ...]


@dataclass(frozen=True)
class Judge:
    """The checks that are asked, and the silences of the day."""

    checks: tuple[AnyCheck, ...]
    silences: Silences

    @classmethod
    def of(cls, desired: Desired, today: str = "", more: Iterable[AnyCheck] = ()) -> "Judge":
        """The built-in checks and `more`, and the silences of the spec on this day."""
        checks = (*BUILT_IN, *more)
        return cls(checks, Silences.of(desired.silences, today, checks))

    def of_gang(self, case: Case, occasion: Occasion | None) -> Judgement:
        """Why not to boot (bring, prove) this gang now, in the order of the checks and ranks. None: nothing is done."""
        standing, silenced = self.silences.parted(self._asked(case, occasion))
        return Judgement(
            fails=tuple(item for item in standing if item.result is Result.FAIL),
            silenced=silenced,
            notices=tuple(item for item in standing if item.result is Result.WARN or _is_broken(item)),
        )

    def of_rank_checks(self, case: Case, occasion: Occasion | None) -> Iterator[Finding]:
        """What the checks of ranks say on this occasion."""
        for check in self.checks:
            if isinstance(check, Check) and occasion in check.occasions:
                yield from of_gang(check, case)

    def of_node(self, site: Site) -> Iterator[Finding]:
        """What the checks of nodes say."""
        for check in self.checks:
            if isinstance(check, NodeCheck):
                yield from of_node(check, site)

    def _asked(self, case: Case, occasion: Occasion | None) -> Iterator[Finding]:
        for check in self.checks:
            if isinstance(check, Check) and occasion in check.occasions:
                yield from objections(check, case)
        if occasion is Occasion.BOOT:
            for check in self.checks:
                if isinstance(check, NodeCheck) and check.holds_up_boots:
                    yield from _for_gang(check, case)


def _for_gang(check: NodeCheck, case: Case) -> Iterator[Finding]:
    """Of a node's check, what concerns the gang that boots there."""
    for rank in case.view.ranks:
        found = of_node(check, Site(case.desired, case.observed, rank.facts))
        yield from (replace(item, address=case.view.gang.address) for item in found)


def _is_broken(finding: Finding) -> bool:
    return finding.result is Result.UNKNOWN and finding.evidence.startswith(BROKEN)
