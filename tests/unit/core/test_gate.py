"""The health gate: what was seen of a gang -> healthy, still coming, or failed with a reason."""

import json
from typing import Any

import pytest

from reconciler.core.answers import Answer, answer_text, probe_request
from reconciler.core.desired import HealthGate
from reconciler.core.gate import (
    Health,
    Verdict,
    judge_health,
    judge_models,
    judge_probe,
    judge_ranks,
)
from reconciler.core.observed import Container
from reconciler.core.probes import Probe
from tests.unit.core.build import container, gang

PAIR = gang("a", ("n1", "n2"))
GATE = HealthGate("127.0.0.1", 30000, served_name="mimo")
PARIS = Probe("chat", "Capital of France?", expect="Paris")


def chat(content: object, **message: object) -> Answer:
    body = {"choices": [{"message": {"content": content, **message}}]}
    return Answer(200, json.dumps(body).encode())


def ended(rank: int, at: str, **others: Any) -> Container:
    return container(PAIR, rank, state="exited", exit_code=1, finished_at=at, **others)


UP = (container(PAIR, 0), container(PAIR, 1))

RANKS: list[tuple[str, tuple[Container | None, ...], tuple[str, str, int] | None]] = [
    ("all run", UP, None),
    (
        "one exited",
        (UP[0], ended(1, "2026-03-01T11:00:00Z")),
        ("degraded", "rank 1 on n2 exited 1 at 2026-03-01T11:00:00Z", 1),
    ),
    (
        "the one that ended first is to blame",
        (ended(0, "2026-03-01T11:00:09Z"), ended(1, "2026-03-01T11:00:02Z")),
        ("degraded", "rank 1 on n2 exited 1 at 2026-03-01T11:00:02Z", 1),
    ),
    (
        "first to a part of a second",
        (ended(0, "2026-03-01T11:00:02.123Z"), ended(1, "2026-03-01T11:00:02.12Z")),
        ("degraded", "rank 1 on n2 exited 1 at 2026-03-01T11:00:02Z", 1),
    ),
    (
        "a whole second comes before its parts",
        (ended(0, "2026-03-01T11:00:02.5Z"), ended(1, "2026-03-01T11:00:02Z")),
        ("degraded", "rank 1 on n2 exited 1 at 2026-03-01T11:00:02Z", 1),
    ),
    (
        "at the same moment the lower rank",
        (ended(0, "2026-03-01T11:00:02Z"), ended(1, "2026-03-01T11:00:02Z")),
        ("degraded", "rank 0 on n1 exited 1 at 2026-03-01T11:00:02Z", 0),
    ),
    (
        "an end with a time before one that is only missing",
        (None, ended(1, "2026-03-01T11:00:02Z")),
        ("degraded", "rank 1 on n2 exited 1 at 2026-03-01T11:00:02Z", 1),
    ),
    ("one is gone", (None, UP[1]), ("missing", "rank 0 on n1 is missing", 0)),
    (
        "one restarts again and again",
        (UP[0], container(PAIR, 1, state="restarting")),
        ("crash-looping", "rank 1 on n2 is restarting", 1),
    ),
    ("one is paused", (container(PAIR, 0, state="paused"), UP[1]), ("degraded", "rank 0 on n1 is paused", 0)),
    (
        "one could not start",
        (UP[0], container(PAIR, 1, state="created", error="port is already allocated")),
        ("degraded", "rank 1 on n2 was never started: port is already allocated", 1),
    ),
    (
        "out of memory",
        (UP[0], ended(1, "", oom_killed=True)),
        ("degraded", "rank 1 on n2 exited 1 (out of memory)", 1),
    ),
]


@pytest.mark.parametrize(("what", "found", "expected"), RANKS, ids=[row[0] for row in RANKS])
def test_ranks(what: str, found: tuple[Container | None, ...], expected: tuple[str, str, int] | None) -> None:
    verdict = judge_ranks(PAIR, found)
    assert expected == (verdict and (str(verdict.health), verdict.detail, verdict.rank)), what


@pytest.mark.parametrize(
    ("code", "words"),
    [(137, "exited 137 (killed)"), (143, "exited 143 (terminated)"), (139, "exited 139 (segmentation fault)")],
)
def test_exit_codes_of_signals_are_told_in_words(code: int, words: str) -> None:
    verdict = judge_ranks(PAIR, (UP[0], container(PAIR, 1, state="exited", exit_code=code, finished_at="")))
    assert verdict is not None
    assert f"rank 1 on n2 {words}" == verdict.detail


HEALTH: list[tuple[Answer, str | None]] = [
    (Answer(200), None),
    (Answer(503, b"loading"), "/health answers 503"),
    (Answer(500), "/health answers 500"),
    (Answer(404), "/health answers 404"),
    (Answer(None, error="connection refused"), "connection refused"),
]


@pytest.mark.parametrize(("answer", "expected"), HEALTH, ids=[str(row[0].status) for row in HEALTH])
def test_a_health_path_that_is_not_200_is_still_loading(answer: Answer, expected: str | None) -> None:
    verdict = judge_health(GATE, answer)
    assert (expected and Verdict(Health.PROGRESSING, "loading", expected)) == verdict


def models(*names: str) -> Answer:
    return Answer(200, json.dumps({"data": [{"id": name} for name in names]}).encode())


MODELS: list[tuple[str, Answer, Verdict | None]] = [
    ("listed", models("other", "mimo"), None),
    ("another model", models("llama"), Verdict(Health.DEGRADED, "models", "serves llama, not mimo")),
    ("two others", models("x", "y"), Verdict(Health.DEGRADED, "models", "serves x, y, not mimo")),
    ("none", models(), Verdict(Health.DEGRADED, "models", "serves no model, not mimo")),
    ("garbage", Answer(200, b"\xff<html>"), Verdict(Health.DEGRADED, "models", "serves no model, not mimo")),
    ("a list", Answer(200, b"[1]"), Verdict(Health.DEGRADED, "models", "serves no model, not mimo")),
    ("null", Answer(200, b'{"data": null}'), Verdict(Health.DEGRADED, "models", "serves no model, not mimo")),
    ("500", Answer(500, b"oops"), Verdict(Health.PROGRESSING, "models", "/v1/models answers 500")),
    ("no answer", Answer(None, error="timed out"), Verdict(Health.PROGRESSING, "models", "timed out")),
]


@pytest.mark.parametrize(("what", "answer", "expected"), MODELS, ids=[row[0] for row in MODELS])
def test_the_served_model_is_listed(what: str, answer: Answer, expected: Verdict | None) -> None:
    assert expected == judge_models(GATE, answer), what


def test_a_lane_without_a_served_name_serves_anything() -> None:
    assert judge_models(HealthGate("127.0.0.1", 1), models("whatever")) is None


PROBES: list[tuple[str, Probe, Answer, str | None]] = [
    ("right", PARIS, chat("It is Paris."), None),
    ("right in another case", PARIS, chat("PARIS"), None),
    ("right in the reasoning alone", PARIS, chat(None, reasoning_content="Paris, I think"), None),
    ("anything when nothing is expected", Probe("chat", "hi"), chat("hello"), None),
    ("a regex that matches", Probe("chat", "2+2", expect_regex=r"\b4\b"), chat("it is 4."), None),
    ("wrong", PARIS, chat("Lyon"), "'Capital of France?' got 'Lyon', expected 'Paris'"),
    ("garbage", PARIS, chat("!!!!!!!!"), "'Capital of France?' got '!!!!!!!!', expected 'Paris'"),
    (
        "a regex that does not match",
        Probe("chat", "2+2", expect_regex=r"^4$"),
        chat("44"),
        "'2+2' got '44', expected '/^4$/'",
    ),
    (
        "a text and a regex, one wrong",
        Probe("chat", "q", expect="a", expect_regex="b"),
        chat("xa"),
        "'q' got 'xa', expected '/b/'",
    ),
    ("empty", PARIS, chat(""), "'Capital of France?' got an empty answer"),
    ("blank", PARIS, chat(" \n"), "'Capital of France?' got an empty answer"),
    ("null", PARIS, chat(None), "'Capital of France?' got an empty answer"),
    (
        "null of a completion",
        Probe("completion", "q"),
        Answer(200, b'{"choices": [{"text": null}]}'),
        "'q' got an empty answer",
    ),
    ("500", PARIS, Answer(500, b"CUDA error"), "'Capital of France?' got status 500: CUDA error"),
    ("200 that is no completion", PARIS, Answer(200, b"<html>"), "'Capital of France?' got status 200: <html>"),
    ("no choices", PARIS, Answer(200, b'{"choices": []}'), "'Capital of France?' got status 200: {\"choices\": []}"),
    ("bytes that are no text", PARIS, Answer(502, b"\xff"), "'Capital of France?' got status 502: \ufffd"),
    ("nothing", PARIS, Answer(None, error="timed out"), "no answer to 'Capital of France?': timed out"),
]


@pytest.mark.parametrize(("what", "probe", "answer", "expected"), PROBES, ids=[row[0] for row in PROBES])
def test_a_probe_is_answered_right_or_the_gang_is_degraded(
    what: str, probe: Probe, answer: Answer, expected: str | None
) -> None:
    assert (expected and Verdict(Health.DEGRADED, "probe", expected)) == judge_probe(probe, answer), what


def test_a_long_wrong_answer_is_cut() -> None:
    verdict = judge_probe(PARIS, chat("x" * 5000))
    assert verdict is not None
    assert len(verdict.detail) < 200


TEXTS = [
    (b'{"choices": [{"text": "a"}]}', "a"),
    (b'{"choices": [{"message": {"content": "a", "reasoning_content": "b"}}]}', "ba"),
    (b'{"choices": [{"message": "a"}]}', None),
    (b'{"choices": {}}', None),
    (b"{}", None),
    (b"null", None),
    (b"", None),
    (b"\xff\xfe", None),
]


@pytest.mark.parametrize(("body", "expected"), TEXTS)
def test_the_text_of_an_answer_or_none_when_it_is_no_completion(body: bytes, expected: str | None) -> None:
    assert expected == answer_text(body)


def test_a_chat_probe_asks_greedily_and_names_the_model() -> None:
    expected = {
        "model": "mimo",
        "max_tokens": 32,
        "temperature": 0,
        "messages": [{"role": "user", "content": "Capital of France?"}],
    }
    assert ("POST", "/v1/chat/completions", expected) == probe_request("mimo", PARIS)


def test_a_completion_probe_asks_without_a_model_where_none_is_named() -> None:
    expected = {"max_tokens": 5, "temperature": 0, "prompt": "Once"}
    assert ("POST", "/v1/completions", expected) == probe_request(None, Probe("completion", "Once", max_tokens=5))


def test_waiting_helps_only_while_it_is_progressing_or_not_known() -> None:
    assert {Health.PROGRESSING, Health.UNKNOWN} == {item for item in Health if not Verdict(item, "x").is_final}


def test_an_answer_nested_without_end_is_no_answer() -> None:
    """The parser gives up on it with another error than on what is no JSON."""
    body = b"[" * 200_000
    assert answer_text(body) is None
    verdict = judge_models(GATE, Answer(200, body))
    assert verdict is not None
    assert verdict.health is Health.DEGRADED
