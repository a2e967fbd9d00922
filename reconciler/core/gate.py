"""The health gate, pure: from what was seen of a gang to healthy, progressing or failed with a reason.

Healthy means: every rank runs, the head answers its health path, the served model is listed, and each probe's answer
is right. A port that answers 200 and talks garbage is not healthy.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from reconciler.core.desired import Gang, HealthGate, Probe
from reconciler.core.explain import describe_end
from reconciler.core.observed import Container


class Health(StrEnum):
    """The health axis. Values are stable: they are in JSON outputs."""

    HEALTHY = "healthy"
    PROGRESSING = "progressing"
    DEGRADED = "degraded"
    CRASH_LOOPING = "crash-looping"
    MISSING = "missing"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Answer:
    """An HTTP answer of the head; `status` None: no connection, `error` says why."""

    status: int | None
    body: bytes = b""
    error: str = ""


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
    dead = [
        (container.finished_at.rstrip("Z") if container else "", rank, container)  # digits of a second vary in number
        for rank, container in zip(gang.ranks, found, strict=True)
        if container is None or container.state != "running"
    ]
    if not dead:
        return None
    _, rank, container = min(dead, key=lambda item: (item[0] or "~", item[1].index))
    health = Health.MISSING if container is None else Health.DEGRADED
    if container is not None and container.state == "restarting":
        health = Health.CRASH_LOOPING
    return Verdict(health, "ranks", f"rank {rank.index} on {rank.node} {describe_end(container)}", rank.index)


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


def probe_request(gate: HealthGate, probe: Probe) -> tuple[str, dict[str, object]]:
    """Path and JSON body that put the probe's question, greedily so that the answer can be compared."""
    body: dict[str, object] = {"max_tokens": probe.max_tokens, "temperature": 0}
    if gate.served_name is not None:
        body["model"] = gate.served_name
    if probe.kind == "chat":
        return "/v1/chat/completions", {**body, "messages": [{"role": "user", "content": probe.prompt}]}
    return "/v1/completions", {**body, "prompt": probe.prompt}


def judge_probe(probe: Probe, answer: Answer) -> Verdict | None:
    """Whether the answer is right; None when it is."""
    if answer.status is None:
        return Verdict(Health.DEGRADED, "probe", f"no answer to {probe.prompt!r}: {answer.error}")
    text = answer_text(answer.body)
    if answer.status != 200 or text is None:
        said = answer.body[:200].decode(errors="replace")
        return Verdict(Health.DEGRADED, "probe", f"{probe.prompt!r} got status {answer.status}: {said}")
    if not text.strip():
        return Verdict(Health.DEGRADED, "probe", f"{probe.prompt!r} got an empty answer")
    if not _is_expected(probe, text):
        wanted = probe.expect if probe.expect is not None else f"/{probe.expect_regex}/"
        return Verdict(Health.DEGRADED, "probe", f"{probe.prompt!r} got {shortened(text)!r}, expected {wanted!r}")
    return None


def _is_expected(probe: Probe, text: str) -> bool:
    if probe.expect is not None and probe.expect.casefold() not in text.casefold():
        return False
    return probe.expect_regex is None or re.search(probe.expect_regex, text) is not None


def answer_text(body: bytes) -> str | None:
    """The generated text of a chat or text completion; None when the body is neither.

    Shapes after the OpenAI API reference; `reasoning_content` counts, some engines put short answers there only.
    """
    try:
        choice = json.loads(body)["choices"][0]
        message = choice.get("message")
        if message is None:
            return str(choice["text"] or "")
        return f"{message.get('reasoning_content') or ''}{message.get('content') or ''}"
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError):
        return None


def shortened(text: str) -> str:
    """An answer of which a line shows enough."""
    return text if len(text) <= 120 else f"{text[:117]}..."
