"""The health gate, pure: from what was seen of a gang to healthy, progressing or failed with a reason.

Healthy means: every rank runs and none was started again, each rank's pages and the head's health path answer 200, the
served model is listed, a token comes in time, and each probe's answer is right. A port that answers 200 and talks
garbage is not healthy.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from reconciler.core.answers import Answer, fault
from reconciler.core.desired import Endpoint, Gang, HealthGate, RankSpec
from reconciler.core.explain import describe_end
from reconciler.core.observed import Container
from reconciler.core.probes import Probe


class Health(StrEnum):
    """The health axis. Values are stable: they are in JSON outputs."""

    HEALTHY = "healthy"
    PROGRESSING = "progressing"
    DEGRADED = "degraded"
    CRASH_LOOPING = "crash-looping"
    MISSING = "missing"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Verdict:
    """Where the gang is. `detail` is for people; `rank` names the rank a failure is about."""

    health: Health
    phase: str
    detail: str = ""
    rank: int | None = None

    @property
    def is_final(self) -> bool:
        """Whether waiting longer changes nothing."""
        return self.health in {Health.HEALTHY, Health.DEGRADED, Health.CRASH_LOOPING, Health.MISSING}


def judge_ranks(gang: Gang, found: tuple[Container | None, ...]) -> Verdict | None:
    """A failure among the ranks, the one that ended first; None when every rank runs."""
    restarts = next((rank for rank, item in zip(gang.ranks, found, strict=True) if item and item.restart_count), None)
    dead = [
        (container.finished_at.rstrip("Z") if container else "", rank, container)  # digits of a second vary in number
        for rank, container in zip(gang.ranks, found, strict=True)
        if container is None or container.state != "running"
    ]
    if not dead and restarts is not None:  # we start nothing with a policy that would do that
        detail = f"rank {restarts.index} on {restarts.node} was restarted by Docker since it booted"
        return Verdict(Health.DEGRADED, "ranks", detail, restarts.index)
    if not dead:
        return None
    _, rank, container = min(dead, key=lambda item: (item[0] or "~", item[1].index))
    health = Health.MISSING if container is None else Health.DEGRADED
    if container is not None and container.state == "restarting":
        health = Health.CRASH_LOOPING
    return Verdict(health, "ranks", f"rank {rank.index} on {rank.node} {describe_end(container)}", rank.index)


def judge_restarts(
    gang: Gang, first: tuple[Container | None, ...], now: tuple[Container | None, ...]
) -> Verdict | None:
    """A rank that is not the one it was at the first look: started again, or another container; None when all are.

    One that has started by itself again has lost its place in the gang, whatever its pages answer.
    """
    for rank, before, found in zip(gang.ranks, first, now, strict=True):
        if before is None or found is None:
            continue
        if (before.id, before.started_at, before.restart_count) != (found.id, found.started_at, found.restart_count):
            detail = f"rank {rank.index} on {rank.node} was started again while the gang booted"
            return Verdict(Health.CRASH_LOOPING, "ranks", detail, rank.index)
    return None


def judge_endpoint(rank: RankSpec, endpoint: Endpoint, answer: Answer) -> Verdict | None:
    """What a page of a rank says; None when it is 200."""
    if answer.status == 200:
        return None
    said = answer.error or f"{endpoint.path} on port {endpoint.port} answers {answer.status}"
    return Verdict(Health.PROGRESSING, "loading", f"rank {rank.index} on {rank.node}: {said}", rank.index)


def judge_health(gate: HealthGate, answer: Answer) -> Verdict | None:
    """What the health path says; None when it is 200."""
    if answer.status == 200:
        return None
    said = answer.error or f"{gate.path} answers {answer.status}"
    return Verdict(Health.PROGRESSING, "loading", said)


def judge_models(gate: HealthGate, answer: Answer) -> Verdict | None:
    """Whether the served model is listed; None when it is, or when none is asked for."""
    if gate.served_name is None:
        return None
    if answer.status != 200:
        return Verdict(Health.PROGRESSING, "models", answer.error or f"/v1/models answers {answer.status}")
    names = tuple(_model_names(answer.body))
    if gate.served_name in names:
        return None
    return Verdict(Health.DEGRADED, "models", f"serves {', '.join(names) or 'no model'}, not {gate.served_name}")


def _model_names(body: bytes) -> Iterator[str]:
    try:
        items = json.loads(body).get("data", [])
        yield from (str(item["id"]) for item in items)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return


def judge_probe(probe: Probe, answer: Answer) -> Verdict | None:
    """Whether the answer is right; None when it is."""
    wrong = fault(probe, answer)
    return None if wrong is None else Verdict(Health.DEGRADED, "probe", wrong)
