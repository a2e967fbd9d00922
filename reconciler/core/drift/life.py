"""Runtime: what became of containers by themselves. Ranks that ended, lanes that do not answer, what was left over."""

import math
import re
from calendar import timegm
from collections.abc import Iterator, Mapping

from reconciler.core.classify import GangView, RankView
from reconciler.core.drift.finding import Finding, Kind, Severity
from reconciler.core.explain import describe_end, how_ended
from reconciler.core.gate import Health, Verdict
from reconciler.core.identity import is_proved
from reconciler.core.observed import Container, Observed, Placed

UTC = re.compile(r"([12]\d{3})-(0[1-9]|1[0-2])-(\d\d)T(\d\d):(\d\d):(\d\d)(\.\d+)?Z")
"""A time as the engine tells of a container's life."""

ERROR_S = 1.0
"""So far apart are two times at least of which one is surely the later."""

PROOF = "proof"
"""The field of what has yet to be proved; while a lane boots, it cannot have been."""

BOOTS = frozenset({"loading", "models"})
"""Phases of a verdict in which nothing answers its users."""


def rank_life(address: str, rank: RankView, causes: Mapping[tuple[str, int], str]) -> Iterator[Finding]:
    """One rank. `causes`: how ranks ended and why, in a sentence, by gang and rank."""
    where = f"{address}/{rank.rank.index}@{rank.rank.node}"
    present = rank.present
    if present is None or present.state != "running":
        yield Finding(
            Kind.RUNTIME,
            where,
            "state",
            "running",
            how_ended(present),
            "boot the gang again",
            since=present.finished_at if present else "",
            evidence=_evidence(rank, causes.get((address, rank.rank.index), "")),
            severity=Severity.OUTAGE,
        )
        return
    if not is_proved(present.name):
        evidence = f"its name is {present.name}: the health gate has not passed since it was made"
        yield Finding(
            Kind.RUNTIME, where, PROOF, "proved healthy", "never proved", "prove it", present.started_at, evidence
        )
    yield from _marks(where, present)


def _evidence(rank: RankView, cause: str) -> str:
    present = rank.present
    if present is None:
        return f"no container of it on {rank.rank.node}"
    parts = [f"docker inspect {present.name}: State.Status {present.state}"]
    if present.exit_code is not None:
        parts.append(f"exit code {present.exit_code}")
    if present.oom_killed:
        parts.append("OOMKilled")
    told = ", ".join(parts)
    why = cause.removeprefix(describe_end(present)).removeprefix(": ")
    return f"{told}; {why}" if why else told


def _marks(where: str, present: Container) -> Iterator[Finding]:
    """What Docker remembers of a container that runs."""
    if present.restart_count:
        yield Finding(
            Kind.RUNTIME,
            where,
            "restarts",
            "none",
            "restarted by Docker",
            "boot the gang again once it ends",
            since=present.started_at,
            evidence=f"docker inspect {present.name}: RestartCount {present.restart_count}",
        )
    if present.oom_killed:
        yield Finding(
            Kind.RUNTIME,
            where,
            "memory",
            "enough",
            "a process of it was killed for lack of memory",
            "nothing by itself: see `fleet logs`",
            evidence=f"docker inspect {present.name}: State.OOMKilled true, and it runs on",
        )


def alone(view: GangView) -> Iterator[Finding]:
    """A rank that ended while another ran on, and was started again: it has lost its place among the others.

    Each node tells times by its own clock: they are compared by the controller's.
    """
    present = [(rank, item) for rank in view.ranks if (item := rank.present) is not None and item.state == "running"]
    for rank, item in present:
        others = [(one, other) for one, other in present if one is not rank]
        ended_s = _ended_s(rank, item)
        beside = [(one, other) for one, other in others if ended_s > _at_s(one, other.started_at, math.inf) + ERROR_S]
        if beside and not item.restart_count:
            one, other = beside[0]
            yield Finding(
                Kind.RUNTIME,
                f"{view.gang.address}/{rank.rank.index}@{rank.rank.node}",
                "start",
                "together with the other ranks",
                "started again alone",
                "nothing by itself: `docker stop` it, and the gang boots again",
                since=item.started_at,
                evidence=f"{item.name} ended and started again, and {other.name} on {one.rank.node} ran on",
            )


def _ended_s(rank: RankView, item: Container) -> float:
    """When the life before its present one ended at the latest that is known; a node that boots ends them all."""
    ended_s, booted_s = _at_s(rank, item.finished_at, -math.inf), rank.facts.host.booted_s
    if booted_s is None or _offset_s(rank) + _at_s(rank, item.created_at, math.inf) + ERROR_S > booted_s:
        return ended_s
    return max(ended_s, booted_s - _offset_s(rank))


def _at_s(rank: RankView, text: str, never_s: float) -> float:
    """A time of a node's engine, in seconds since 1970 by the controller's clock."""
    found = UTC.fullmatch(text)
    if found is None:
        return never_s
    return timegm((*map(int, found.groups()[:6]), 0, 0, 0)) + float(f"0{found[7] or ''}") - _offset_s(rank)


def _offset_s(rank: RankView) -> float:
    clock = rank.facts.host.clock
    return clock.offset_s if clock else 0.0


def lane_health(address: str, verdict: Verdict | None) -> Iterator[Finding]:
    """What the head said."""
    if verdict is None or verdict.health is Health.HEALTHY or verdict.phase == "ranks":
        return
    boots = verdict.health is Health.PROGRESSING
    serves = verdict.health in {Health.UNKNOWN, Health.PROGRESSING} or verdict.phase == "probe"
    yield Finding(
        Kind.RUNTIME,
        address,
        "health",
        "healthy",
        verdict.detail,
        "nothing: it boots" if boots else "nothing by itself: see `fleet logs`",
        evidence=f"its head was asked: {verdict.phase}",
        severity=Severity.DEGRADED if serves else Severity.OUTAGE,
        sign=str(verdict.health) if boots else f"{verdict.health} {verdict.phase}",
    )


def left_over(address: str, item: Placed) -> Finding:
    """A container of the gang that is of no use any more."""
    runs = item.container.is_running
    return Finding(
        Kind.RUNTIME,
        f"{address}@{item.node}",
        f"container {item.container.name}",
        "not there",
        "runs" if runs else "is left, stopped",
        "remove it",
        since=item.container.started_at if runs else item.container.finished_at,
        evidence=f"docker ps -a on {item.node}",
        severity=Severity.DEGRADED if runs else Severity.NOTICE,
    )


def trials(fleet: str, observed: Observed) -> Iterator[Finding]:
    """Containers in which a run tried something out, and which it did not remove."""
    for node in sorted(observed.nodes):
        facts = observed.facts(node)
        for item in facts.containers if facts else ():
            if item.preflight is not None and item.preflight.fleet == fleet:
                yield Finding(
                    Kind.RUNTIME,
                    f"{item.preflight.gang}@{node}",
                    f"container {item.name}",
                    "not there",
                    "is left from a preflight",
                    "remove it",
                    since=item.created_at,
                    evidence=f"docker ps -a on {node}",
                    severity=Severity.NOTICE,
                )
