"""Whether the answer to a probe is right, kind by kind."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.core.answers import Answer, fault, generated, probe_request, told
from reconciler.core.probes import Limits, Probe, Request

QUESTION = "Capital of France?"
PARIS = Probe("chat", QUESTION, expect="Paris")
VECTOR = Probe("embeddings", "a text")
SCORE = Probe(
    "http", "POST /score", request=Request("POST", "/score", '{"a":1}'), expect_json=(("data.0.kind", '"score"'),)
)
CHECK = Probe("command", "python3 /check.py", command=("python3", "/check.py"), expect="fine")
WITHOUT_END = r"(.*)(.*)(.*)(.*)(.*)\1\2\3\4\5X"
JUNK = "法国的首都是哪里呢我不知道 or Paris"


def reply(body: object, status: int = 200) -> Answer:
    return Answer(status, json.dumps(body).encode())


def chat(content: str | None, **message: Any) -> Answer:
    return reply({"choices": [{"message": {"content": content, **message}}]})


def vector(*numbers: object) -> Answer:
    return reply({"data": [{"embedding": list(numbers)}]})


CASES: list[tuple[str, Probe, Answer, str | None]] = [
    ("junk with the right word in it", PARIS, chat(JUNK), "answers junk: 65 % of its letters are Han"),
    ("junk in the thoughts", PARIS, chat("Paris", reasoning_content=JUNK), "thinks junk: 65 % of its letters are Han"),
    ("under its new name", PARIS, chat("Paris", reasoning=JUNK), "thinks junk: 65 % of its letters are Han"),
    ("thoughts alone", PARIS, chat(None, reasoning="Paris is in France"), None),
    ("one sign for ever", Probe("chat", "hi"), chat("!" * 60), "answers junk: '!' comes 60 times in a row"),
    ("the question's own script", Probe("chat", "Столица Франции?"), chat("Это город Париж."), None),
    ("the wanted answer's script", Probe("chat", "In Russian?", expect="Париж"), chat("Это город Париж"), None),
    (
        "declared scripts alone",
        Probe("chat", "Столица?", scripts=("Latin",)),
        chat("Это город Париж."),
        "answers junk: 100 % of its letters are Cyrillic, only Latin is expected",
    ),
    ("widened", Probe("chat", "hi", limits=Limits(foreign=1.0)), chat("法国的首都是巴黎,它在塞纳河畔"), None),
    (
        "what must never come",
        Probe("chat", "hi", never=(r"<\|im_\w+\|>",)),
        chat("hello <|im_end|>"),
        "'hi' got 'hello <|im_end|>', of which '<|im_end|>' must never come (/<\\|im_\\w+\\|>/)",
    ),
    (
        "never in the thoughts either",
        Probe("chat", "hi", never=("secret",)),
        chat("hello", reasoning="the secret"),
        "'hi' got 'the secrethello', of which 'secret' must never come (/secret/)",
    ),
    (
        "an expression without end",
        Probe("chat", "hi", expect_regex=WITHOUT_END, limits=Limits(repetition=1.0)),
        chat("abcdefghij" * 60 + "X"),
        f"/{WITHOUT_END}/ takes more than 1 s on the answer to 'hi': write it simpler",
    ),
    (
        "a hang",
        PARIS,
        Answer(None, error="x", late=True),
        "no whole answer within 60 s to 'Capital of France?' (at most 32 tokens): its pages answer, but",
    ),
    ("no connection", PARIS, Answer(None, error="refused"), "no answer to 'Capital of France?': refused"),
    ("a vector", VECTOR, vector(0.1, -2, 0), None),
    ("zeros", VECTOR, vector(0.0, 0.0), "'a text' got no vector of numbers"),
    ("no numbers", VECTOR, vector(), "'a text' got no vector of numbers"),
    ("text for numbers", VECTOR, vector("a"), "'a text' got no vector of numbers"),
    ("not a number", VECTOR, Answer(200, b'{"data":[{"embedding":[NaN]}]}'), "'a text' got no vector of numbers"),
    ("no embeddings", VECTOR, Answer(404, b"no"), "'a text' got status 404: no"),
    ("a value in the reply", SCORE, reply({"data": [{"kind": "score"}]}), None),
    ("another value", SCORE, reply({"data": [{"kind": 1}]}), "'POST /score' got 1 at data.0.kind, expected \"score\""),
    ("no such place", SCORE, reply({"data": []}), "'POST /score' got nothing at data.0.kind, expected \"score\""),
    ("no JSON", SCORE, Answer(200, b"<html>"), "'POST /score' got nothing at data.0.kind"),
    (
        "a status that is wanted",
        Probe("http", "GET /x", request=Request("GET", "/x", status=401)),
        Answer(401, b"who are you"),
        None,
    ),
    (
        "a status that is not",
        Probe("http", "GET /x", request=Request("GET", "/x")),
        Answer(401, b"who are you"),
        "'GET /x' got status 401: who are you",
    ),
    ("a program that ends well", CHECK, Answer(0, b"all is fine\n"), None),
    ("and says something else", CHECK, Answer(0, b"hm"), "'python3 /check.py' got 'hm', expected 'fine'"),
    ("a program that fails", CHECK, Answer(3, b"bad"), "'python3 /check.py' got exit code 3: bad"),
    (
        "a program of many lines",
        CHECK,
        Answer(3, b"bad\r\n  worse\r\n"),
        "'python3 /check.py' got exit code 3: bad worse",
    ),
    (
        "a program that hangs",
        CHECK,
        Answer(None, error="Docker did not answer", late=True),
        "'python3 /check.py' did not end within 60 s, its `timeout`",
    ),
]


@pytest.mark.parametrize(("what", "probe", "answer", "expected"), CASES, ids=[row[0] for row in CASES])
def test_what_is_wrong_with_an_answer(what: str, probe: Probe, answer: Answer, expected: str | None) -> None:
    found = fault(probe, answer)
    assert (expected is None) == (found is None), found
    assert (found or "").startswith(expected or "")
    assert (found or "").isprintable()


@given(st.binary(max_size=300), st.sampled_from([PARIS, VECTOR, SCORE, CHECK]))
def test_any_bytes_are_judged_and_none_raises(body: bytes, probe: Probe) -> None:
    assert isinstance(fault(probe, Answer(200, body)), str | None)


@given(st.recursive(st.none() | st.booleans() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(
    st.sampled_from(["choices", "message", "content", "reasoning", "text", "data", "embedding"]), inner)))  # fmt: skip
def test_any_json_is_judged_and_none_raises(body: object) -> None:
    for probe in (PARIS, VECTOR, SCORE):
        assert isinstance(fault(probe, reply(body)), str | None)


@given(st.text(max_size=50), st.text(max_size=50))
def test_what_was_thought_and_said_are_told_apart(thought: str, content: str) -> None:
    said = generated(chat(content, reasoning_content=thought).body)
    assert said is not None
    assert (thought, content, thought + content) == (said.reasoning, said.content, said.whole)


def test_what_is_sent() -> None:
    assert ("POST", "/v1/embeddings", {"model": "m", "input": "a text"}) == probe_request("m", VECTOR)
    assert ("POST", "/score", {"a": 1}) == probe_request("m", SCORE)
    assert ("GET", "/x", None) == probe_request("m", Probe("http", "GET /x", request=Request("GET", "/x")))


def test_what_a_right_answer_was() -> None:
    assert "'Capital of France?' got 'Paris.'" == told(PARIS, chat("Paris."))
    assert "'a text' got 'a good answer'" == told(VECTOR, vector(1))
