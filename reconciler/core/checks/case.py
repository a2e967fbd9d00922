"""What a check may look at: one gang that has to boot, or one node."""

from collections.abc import Iterator
from dataclasses import dataclass

from reconciler.core.checks.finding import Finding, Result
from reconciler.core.classify import GangView, RankView
from reconciler.core.desired import Desired, NodeDeclaration, RankSpec
from reconciler.core.fetching import fetch_of
from reconciler.core.models import ModelWant
from reconciler.core.observed import Container, NodeFacts, Observed
from reconciler.core.staging import Staging


@dataclass(frozen=True)
class Case:
    """One gang with what its checks may look at. `staging`: the images that come to the nodes, also for other gangs."""

    desired: Desired
    observed: Observed
    view: GangView
    staging: Staging

    def declared(self, node: str) -> NodeDeclaration:
        """What the spec says of the node."""
        return self.desired.declarations[node]

    def refuse(self, check: str, rank: RankView, evidence: str, mend: str = "") -> Finding:
        """This gang cannot boot, for what is so at one of its nodes."""
        return self._found(check, rank, Result.FAIL, evidence, mend)

    def warn(self, check: str, rank: RankView, evidence: str, mend: str = "") -> Finding:
        """Worth a person's look; it keeps nothing from booting."""
        return self._found(check, rank, Result.WARN, evidence, mend)

    def unknown(self, check: str, rank: RankView, evidence: str, mend: str = "") -> Finding:
        """The fact could not be had."""
        return self._found(check, rank, Result.UNKNOWN, evidence, mend)

    def fine(self, check: str, rank: RankView, evidence: str) -> Finding:
        """As it has to be."""
        return self._found(check, rank, Result.OK, evidence, "")

    def foreign(self, facts: NodeFacts) -> Iterator[Container]:
        """Running containers of the node that this fleet did not make and may not stop, by name."""
        going = self.going(facts)
        for item in sorted(facts.containers, key=lambda found: found.name):
            if item.is_running and not item.is_of(self.desired.fleet) and item.id not in going:
                yield item

    def is_fetched(self, rank: RankView, want: ModelWant) -> bool:
        """Whether the plan brings this model to the rank's node."""
        return fetch_of(self.view.gang, rank, want, self.observed) is not None

    def going(self, facts: NodeFacts) -> frozenset[str]:
        """Foreign containers of the node that are stopped for the gang."""
        return frozenset(item.container.id for item in self.view.displaced if item.node == facts.node)

    def _found(self, check: str, rank: RankView, result: Result, evidence: str, mend: str) -> Finding:
        return Finding(check, self.view.gang.address, result, evidence, mend, rank.rank.node)


@dataclass(frozen=True)
class Site:
    """One node that could be read, with what its checks may look at."""

    desired: Desired
    observed: Observed
    facts: NodeFacts

    @property
    def node(self) -> str:
        """Its name."""
        return self.facts.node

    @property
    def declared(self) -> NodeDeclaration:
        """What the spec says of it."""
        return self.desired.declarations[self.node]

    @property
    def ranks(self) -> tuple[RankSpec, ...]:
        """The ranks that the spec places on it."""
        return tuple(rank for gang in self.desired.gangs for rank in gang.ranks if rank.node == self.node)

    def ours(self) -> Iterator[Container]:
        """Running containers of this fleet, by name."""
        for item in sorted(self.facts.containers, key=lambda found: found.name):
            if item.is_running and item.owner is not None and item.owner.fleet == self.desired.fleet:
                yield item

    def found(self, check: str, result: Result, evidence: str, mend: str = "") -> Finding:
        """A finding about this node."""
        return Finding(check, self.node, result, evidence, mend, self.node)
