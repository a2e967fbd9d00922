"""What all checks say of a fleet as it was seen once: of each node, and of each wanted gang, also of one that runs."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from reconciler.core.checks import Case, Finding, Judge, Occasion, Result, Silenced, Site
from reconciler.core.classify import GangView, classify
from reconciler.core.desired import Desired
from reconciler.core.observed import Observed, Unknown
from reconciler.core.staging import Staging
from reconciler.core.status import views
from reconciler.core.units import BOOTS

SCHEMA = "fleet.doctor/1"


@dataclass(frozen=True)
class Diagnosis:
    """Every finding that stands, those that were let pass, and the nodes that could not be read.

    Findings are in the order of addresses (of gangs, then of nodes, then of the fleet) and checks.
    """

    schema: str
    fleet: str
    findings: tuple[Finding, ...]
    silenced: tuple[Silenced, ...]
    unknown: tuple[Unknown, ...]

    def of(self, result: Result) -> tuple[Finding, ...]:
        """The findings that came out so."""
        return tuple(item for item in self.findings if item.result is result)


def examine(desired: Desired, observed: Observed, judge: Judge) -> Diagnosis:
    """All that the checks of `judge` say. Pure: what a gang that runs would be refused for, is told as well."""
    found = [*_of_gangs(desired, observed, judge), *_of_nodes(desired, observed, judge), *judge.silences.faults()]
    standing, silenced = judge.silences.parted(found)
    names = {node.name for node in desired.nodes}
    states = (observed.nodes[node] for node in sorted(names & set(observed.nodes)))
    away = tuple(state for state in states if isinstance(state, Unknown))
    return Diagnosis(SCHEMA, desired.fleet, standing, silenced, away)


def limited(
    found: Diagnosis, nodes: frozenset[str] | None, gangs: frozenset[str] | None, checks: frozenset[str]
) -> Diagnosis:
    """The part about these nodes and gangs (None: about all of them), and of these checks (empty: of all)."""

    def is_asked(item: Finding) -> bool:
        about = nodes is None or item.address in nodes or (gangs is not None and item.address in gangs)
        return (about or not item.address) and (not checks or item.check in checks)

    return replace(
        found,
        findings=tuple(item for item in found.findings if is_asked(item)),
        silenced=tuple(item for item in found.silenced if is_asked(item.finding)),
        unknown=tuple(item for item in found.unknown if nodes is None or item.node in nodes),
    )


def _of_gangs(desired: Desired, observed: Observed, judge: Judge) -> Iterator[Finding]:
    seen = views(desired, observed)
    staging = Staging.of([view for view in seen if _boots(view)], desired.transfer, observed)
    for view in seen:
        case = Case(desired, observed, view, staging)
        yield from judge.of_rank_checks(case, Occasion.BOOT if _boots(view) else Occasion.STANDING)


def _boots(view: GangView) -> bool:
    return classify(view).situation in BOOTS


def _of_nodes(desired: Desired, observed: Observed, judge: Judge) -> Iterator[Finding]:
    for node in sorted(item.name for item in desired.nodes):
        facts = observed.facts(node)
        if facts is not None:
            yield from judge.of_node(Site(desired, observed, facts))
