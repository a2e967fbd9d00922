"""Intent: the spec says something else than what was applied. Placements came or went, versions moved on."""

from collections.abc import Iterator

from reconciler.core.classify import GangView, RankView
from reconciler.core.desired import Desired
from reconciler.core.diff import FieldChange, changes
from reconciler.core.drift.applied import applied_spec, as_made
from reconciler.core.drift.finding import Finding, Kind, Severity
from reconciler.core.observed import Container, Observed
from reconciler.core.standins import served_by
from reconciler.core.status import Unwanted, unwanted
from reconciler.core.withhold import Failed

LABEL = "label fleet.spec of"
AGAIN = "nothing: this version failed; change the spec, or `fleet apply --retry` tries it again"


def not_wanted(desired: Desired, observed: Observed, instead: frozenset[str]) -> Iterator[Finding]:
    """Lanes that are there and that no placement wants; not those of `instead`, which stand in for one that failed."""
    for item in unwanted(desired, observed):
        if item.gang not in instead:
            what = f"{item.running} running" if item.running else "stopped containers"
            yield Finding(
                Kind.INTENT,
                item.gang,
                "placement",
                "no placement",
                f"{what} on {', '.join(item.nodes)}",
                "stop and remove them",
                since=_first(desired, observed, item),
                evidence="labels fleet.cluster and fleet.lane of its containers, which no placement of the spec has",
                severity=Severity.DEGRADED if item.running else Severity.NOTICE,
            )


def _first(desired: Desired, observed: Observed, item: Unwanted) -> str:
    """When the first of its containers was made."""
    known = (facts for node in item.nodes if (facts := observed.facts(node)) is not None)
    owned = ((found.owner, found) for facts in known for found in facts.containers)
    times = [
        found.created_at for owner, found in owned if owner and (owner.fleet, owner.gang) == (desired.fleet, item.gang)
    ]
    return min((time for time in times if time), default="")


def absent(view: GangView) -> Finding:
    """A wanted gang of which no rank has a container."""
    return Finding(
        Kind.INTENT,
        view.gang.address,
        "placement",
        "running",
        "not there",
        "boot the gang",
        evidence=f"no container of it on {', '.join(dict.fromkeys(view.gang.nodes))}",
        severity=Severity.OUTAGE,
    )


def put_aside(view: GangView, failed: Failed, stand_ins: tuple[str, ...]) -> Finding:
    """The version that the spec asks for was tried and failed. `stand_ins`: other lanes that serve in its place."""
    earlier = bool(view.holding)
    serves = f"{served_by(stand_ins)} in its place" if stand_ins else "the version before it serves" if earlier else ""
    return Finding(
        Kind.INTENT,
        view.gang.address,
        "version",
        "the one that the spec says",
        f"put aside after it failed{f'; {serves}' if serves else '; nothing serves in its place'}",
        AGAIN,
        evidence=f"run {failed.run_id}: {failed.cause}",
        severity=Severity.DEGRADED if serves else Severity.OUTAGE,
    )


def moved_on(view: GangView) -> Iterator[Finding]:
    """What the spec says now against what the running containers were made from; the same on all ranks is told once."""
    told: dict[FieldChange, RankView] = {}
    for rank in view.ranks:
        for change in _moves(rank):
            told.setdefault(change, rank)
    for change, rank in told.items():
        present = rank.present
        yield Finding(
            Kind.INTENT,
            view.gang.address,
            change.field,
            change.after or "not set",
            change.before or "not set",
            "replace the gang",
            evidence=f"{LABEL} {present.name if present else ''} on {rank.rank.node}: it was made from an earlier spec",
            severity=Severity.DEGRADED,
        )


def _moves(rank: RankView) -> Iterator[FieldChange]:
    present = rank.present
    if present is None or not present.is_running or present.owner is None:
        return
    if present.owner.fingerprint != rank.rank.fingerprint:
        yield from _differences(rank, present) or (_unseen(rank, present),)
    yield from rank.new_secrets


def _differences(rank: RankView, present: Container) -> tuple[FieldChange, ...]:
    made = applied_spec(present.owner, rank.rank.container)
    return changes(rank.rank.container, as_made(present, made)) if made else ()


def _unseen(rank: RankView, present: Container) -> FieldChange:
    """No field shows it, as a default that is now left to the image; or the labels do not say what was applied."""
    made = present.owner.fingerprint[:12] if present.owner else ""
    return FieldChange("fingerprint", made, rank.rank.fingerprint[:12])
