"""`make_model_sync_plan`: copy the models that placements want to nodes that lack them, and touch no lane."""

from collections.abc import Iterator
from dataclasses import replace

from reconciler.core import remarks
from reconciler.core.checks.case import Case
from reconciler.core.checks.check import Occasion
from reconciler.core.checks.judging import Judge
from reconciler.core.classify import GangView
from reconciler.core.desired import Desired, Gang
from reconciler.core.fetching import allowing_copies, fetches_of
from reconciler.core.observed import Observed
from reconciler.core.options import PlanOptions
from reconciler.core.plan import Change, Deferred, Kind, Plan, Step, sealed
from reconciler.core.remarks import refusal_of
from reconciler.core.staging import Staging
from reconciler.core.steps import fetch_step
from reconciler.core.sync import view_of_nodes

REASON = "its model is to be there before it is needed"


def make_model_sync_plan(
    desired: Desired,
    observed: Observed,
    models: frozenset[str] = frozenset(),
    clusters: frozenset[str] | None = None,
    options: PlanOptions | None = None,
) -> Plan:
    """The models (these, or all) that nodes of the placements (of these clusters, or of all) lack, as a frozen plan.

    Pure and deterministic, as `make_plan` is. A node that cannot be read holds up no other. What nobody could give is
    refused.
    """
    allowed = allowing_copies(desired, models)
    gangs = sorted((gang for gang in allowed.gangs if clusters is None or gang.cluster in clusters), key=_address)
    views = [view_of_nodes(gang, observed) for gang in gangs]
    staging = Staging.of((), desired.transfer, observed)
    options = options or PlanOptions()
    judge = Judge.of(allowed, options.today, options.checks)
    judged = [judge.of_gang(Case(allowed, observed, view, staging), Occasion.COPY) for view in views]
    refused = [refusal_of(found) for one in judged for found in one.fails]
    stopped = {item.gang for item in refused}
    steps = {view.gang.address: tuple(_steps(view, observed)) for view in views if view.gang.address not in stopped}
    coming = {address: found for address, found in steps.items() if found}
    return sealed(
        replace(
            remarks.nothing_to_do(allowed, observed, options),
            refusals=tuple(refused),
            deferred=tuple(_deferred(view) for view in views if view.unknown),
            changes=tuple(Change(address, Kind.SYNC, REASON, _nodes(found)) for address, found in coming.items()),
            steps=tuple(_once(step for found in coming.values() for step in found)),
            gangs=tuple(view.gang for view in views if view.gang.address in coming),
            unchanged=tuple(
                view.gang.address for view in views if not view.unknown and view.gang.address not in coming
            ),
        )
    )


def _address(gang: Gang) -> str:
    return gang.address


def _steps(view: GangView, observed: Observed) -> Iterator[Step]:
    return (fetch_step(item, REASON) for item in fetches_of(view, observed))


def _once(steps: Iterator[Step]) -> Iterator[Step]:
    """Each model to each node once: two lanes that read the same share it."""
    seen: set[tuple[str | None, str]] = set()
    for step in steps:
        if (step.node, step.target) not in seen:
            seen.add((step.node, step.target))
            yield step


def _nodes(steps: tuple[Step, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(step.node or "" for step in steps))


def _deferred(view: GangView) -> Deferred:
    return Deferred(view.gang.address, f"{', '.join(state.node for state in view.unknown)} cannot be read")
