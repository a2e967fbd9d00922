"""`make_sync_plan`: bring the images that the placements want, and touch no lane."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from reconciler.core import remarks
from reconciler.core.checks import Case, Judge, Occasion
from reconciler.core.classify import GangView, RankView
from reconciler.core.desired import Desired, Gang
from reconciler.core.observed import Observed, Unknown
from reconciler.core.options import PlanOptions
from reconciler.core.plan import Change, Deferred, Kind, Plan, Refusal, Step, sealed
from reconciler.core.remarks import refusal_of
from reconciler.core.staging import Staging
from reconciler.core.steps import pull_step
from reconciler.core.unknown import not_read

REASON = "its image is to be there before it is needed"


def make_sync_plan(
    desired: Desired,
    observed: Observed,
    clusters: frozenset[str] | None = None,
    options: PlanOptions | None = None,
) -> Plan:
    """The images that nodes of the placements (of these clusters, or of all) lack, as a frozen plan of pulls alone.

    Pure and deterministic, as `make_plan` is. A node that cannot be read holds up no other.
    """
    gangs = sorted(_wanted(desired, clusters), key=_address)
    views = [view_of_nodes(gang, observed) for gang in gangs]
    options = options or PlanOptions()
    staging = Staging.of(views, desired.transfer, observed)
    judge = Judge.of(desired, options.today, options.checks)
    judged = [judge.of_gang(Case(desired, observed, view, staging), Occasion.SYNC) for view in views]
    refused = [refusal_of(found) for one in judged for found in one.fails]
    part = _Part.of(views, refused, staging)
    return sealed(
        replace(
            remarks.nothing_to_do(desired, observed, options),
            refusals=tuple(refused),
            deferred=tuple(_deferred(view) for view in views if view.unknown),
            changes=tuple(_changes(part)),
            steps=tuple(_steps(part)),
            gangs=tuple(view.gang for view in part.views),
            unchanged=tuple(view.gang.address for view in views if not view.unknown and not staging.lacks(view.gang)),
            transfers=part.staging.transfers,
            silenced=tuple(found for one in judged for found in one.silenced),
            notices=tuple(found for one in judged for found in one.notices),
        )
    )


def nodes_to_sync(desired: Desired, clusters: frozenset[str] | None = None) -> frozenset[str]:
    """The nodes that such a plan is about: the others need not be read for it."""
    return frozenset(node for gang in _wanted(desired, clusters) for node in gang.nodes)


def _wanted(desired: Desired, clusters: frozenset[str] | None) -> list[Gang]:
    return [gang for gang in desired.gangs if clusters is None or gang.cluster in clusters]


@dataclass(frozen=True)
class _Part:
    """What goes on: the gangs that lack an image and are not refused."""

    views: tuple[GangView, ...]
    staging: Staging

    @classmethod
    def of(cls, views: Iterable[GangView], refused: Iterable[Refusal], staging: Staging) -> "_Part":
        stopped = {item.gang for item in refused}
        going = tuple(view for view in views if view.gang.address not in stopped and staging.lacks(view.gang))
        return cls(going, Staging.of(going, staging.settings, staging.observed))


def _address(gang: Gang) -> str:
    return gang.address


def view_of_nodes(gang: Gang, observed: Observed) -> GangView:
    """The gang's nodes that can be read, as if no container were there: what matters is the image alone."""
    unknown = tuple(state for node in gang.nodes if isinstance(state := observed.nodes.get(node), Unknown))
    known = ((rank, observed.facts(rank.node)) for rank in gang.ranks)
    return GangView(gang, unknown, tuple(RankView(rank, facts, ()) for rank, facts in known if facts), ())


def _deferred(view: GangView) -> Deferred:
    return Deferred(view.gang.address, not_read(view.unknown))


def _changes(part: _Part) -> Iterator[Change]:
    for view in part.views:
        address = view.gang.address
        nodes = tuple(item.node for item in part.staging.transfers if item.gang == address)
        yield Change(address, Kind.SYNC, REASON, nodes)


def _steps(part: _Part) -> Iterator[Step]:
    for view in part.views:
        for rank in view.ranks:
            transfer = part.staging.transfer(view.gang.address, rank.rank.node)
            if transfer is not None:
                yield pull_step(transfer, rank.rank.index, REASON)
