"""Findings of a read-only comparison: what the live objects are, against what is wanted.

Five classes. Each finding has a stable id, so that a report can say what is new.
"""

from collections.abc import Iterator, Mapping

from reconciler.core.classify import GangView, RankView
from reconciler.core.desired import Desired
from reconciler.core.drift.finding import Finding, Kind
from reconciler.core.explain import describe_end
from reconciler.core.gate import Health, Verdict
from reconciler.core.identity import is_proved
from reconciler.core.observed import Container, Observed, Placed, Unknown
from reconciler.core.status import unwanted, views


def findings(desired: Desired, observed: Observed, health: Mapping[str, Verdict]) -> tuple[Finding, ...]:
    """Everything that differs. `health`: what the head of each running gang said, by address."""
    found = [*_hosts(observed), *_unwanted(desired, observed)]
    for view in views(desired, observed):
        found += _gang(view, health.get(view.gang.address))
    order = list(Kind)
    return tuple(sorted(found, key=lambda item: (order.index(item.kind), item.address, item.field, item.found)))


def _hosts(observed: Observed) -> Iterator[Finding]:
    for node in sorted(observed.nodes):
        state = observed.nodes[node]
        if isinstance(state, Unknown) and not state.is_declared:
            hint = "; ".join(state.hint.splitlines())
            remedy = f"nothing; {hint}" if hint else "nothing: it has to be reachable"
            yield Finding(Kind.HOST, node, "reach", "reachable", state.reason, remedy)


def _unwanted(desired: Desired, observed: Observed) -> Iterator[Finding]:
    for item in unwanted(desired, observed):
        what = f"{item.running} running" if item.running else "stopped containers"
        where = f"{what} on {', '.join(item.nodes)}"
        yield Finding(Kind.INTENT, item.gang, "placement", "no placement", where, "stop and remove them")


def _gang(view: GangView, verdict: Verdict | None) -> Iterator[Finding]:
    if view.unknown:
        return
    address = view.gang.address
    if not any(rank.found for rank in view.ranks):
        yield Finding(Kind.INTENT, address, "placement", "running", "not there", "boot the gang")
        yield from (_left(address, item) for item in view.strays)
        return
    told: list[Container | None] = []
    for rank in view.ranks:
        found = tuple(_rank(address, rank))
        yield from found
        told += [rank.present] if found else []
    for item in view.litter:
        if not any(item.container is present for present in told):  # a rank's own container is not left over, too
            yield _left(address, item)
    if verdict is not None and verdict.health is not Health.HEALTHY:
        yield Finding(Kind.RUNTIME, address, "health", "healthy", verdict.detail, "nothing by itself: see `fleet logs`")


def _rank(address: str, rank: RankView) -> Iterator[Finding]:
    where = f"{address}/{rank.rank.index}@{rank.rank.node}"
    present = rank.present
    if present is None or present.state != "running":
        since = present.finished_at if present else ""
        yield Finding(Kind.RUNTIME, where, "state", "running", describe_end(present), "boot the gang again", since)
    elif not is_proved(present.name):
        yield Finding(Kind.RUNTIME, where, "proof", "proved healthy", "never proved", "prove it", present.started_at)
    if present is not None and rank.fit is None:
        if not rank.drift:  # the spec says something else that the container alone does not show, as a default
            wanted, made = rank.rank.fingerprint[:12], present.owner.fingerprint[:12] if present.owner else ""
            yield Finding(Kind.CONFIG, where, "fingerprint", wanted, made, "replace the gang", present.created_at)
        for change in rank.drift:
            kind = Kind.IDENTITY if change.field == "image" else Kind.CONFIG
            before, after = change.before or "not set", change.after or "not set"
            yield Finding(kind, where, change.field, after, before, "replace the gang", present.created_at)


def _left(address: str, item: Placed) -> Finding:
    found = "runs" if item.container.is_running else "is left, stopped"
    where, what = f"{address}@{item.node}", f"container {item.container.name}"
    return Finding(Kind.RUNTIME, where, what, "not there", found, "remove it")
