"""What a probe sends, and whether the answer to it is right. Pure.

Shapes after the OpenAI API reference and what vLLM, SGLang and llama.cpp add to it: a text may come in `content`, and
what was thought before it in `reasoning_content` or `reasoning`. All of them are looked at.
"""

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from reconciler.core.canonical import canonical_json
from reconciler.core.junk import LONGEST_TEXT, junk, scripts_of
from reconciler.core.probes import Limits, Probe

PATIENCE_S = 1.0
"""Seconds that an expression of the spec may take on one answer: some would take for ever."""


@dataclass(frozen=True)
class Answer:
    """An HTTP answer of the head; `status` None: no answer, `error` says why, `late`: it did not come in time.

    Of a command, `status` is its exit code and `body` what it printed.
    """

    status: int | None
    body: bytes = b""
    error: str = ""
    late: bool = False


@dataclass(frozen=True)
class Said:
    """What a model generated: its answer, and what it thought before that."""

    content: str
    reasoning: str = ""

    @property
    def whole(self) -> str:
        """All of it."""
        return f"{self.reasoning}{self.content}"


def probe_request(served_name: str | None, probe: Probe) -> tuple[str, str, Mapping[str, object] | None]:
    """Method, path and JSON body of what is asked, greedily so that the answer can be compared."""
    if probe.request is not None:
        return probe.request.method, probe.request.path, json.loads(probe.request.body) if probe.request.body else None
    body: dict[str, object] = {} if served_name is None else {"model": served_name}
    if probe.kind == "embeddings":
        return "POST", "/v1/embeddings", {**body, "input": probe.prompt}
    body |= {"max_tokens": probe.max_tokens, "temperature": 0}
    if probe.kind == "chat":
        return "POST", "/v1/chat/completions", {**body, "messages": [{"role": "user", "content": probe.prompt}]}
    return "POST", "/v1/completions", {**body, "prompt": probe.prompt}


def fault(probe: Probe, answer: Answer) -> str | None:
    """What is wrong with the answer, as a sentence; None when it is right."""
    if answer.status is None:
        return _silence(probe, answer)
    if answer.status != _wanted_status(probe):
        return f"{_asked(probe)} got {_status(probe)} {answer.status}: {_start(answer.body)}"
    return next(_faults(probe, answer), None)


def told(probe: Probe, answer: Answer) -> str:
    """What a right answer was, for people."""
    return f"{_asked(probe)} got {shortened(_text(probe, answer) or 'a good answer')!r}"


def answer_text(body: bytes) -> str | None:
    """The generated text of a chat or text completion, reasoning first; None when the body is neither."""
    said = generated(body)
    return None if said is None else said.whole


def generated(body: bytes) -> Said | None:
    """What a chat or text completion says; None when the body is neither."""
    try:
        choice = json.loads(body)["choices"][0]
        message = choice.get("message")
        if message is None:
            return Said(str(choice["text"] or ""))
        reasoning = message.get("reasoning_content") or message.get("reasoning") or ""
        return Said(str(message.get("content") or ""), str(reasoning))
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError):
        return None


def shortened(text: str) -> str:
    """An answer of which a line shows enough."""
    return text if len(text) <= 120 else f"{text[:117]}..."


def _silence(probe: Probe, answer: Answer) -> str:
    if answer.late and probe.generates:
        whole = f"no whole answer within {probe.timeout_s:g} s to {_asked(probe)} (at most {probe.max_tokens} tokens)"
        return f"{whole}: its pages answer, but generation hangs or is too slow"
    if answer.late and probe.kind == "command":
        return f"{_asked(probe)} did not end within {probe.timeout_s:g} s, its `timeout`"
    return f"no answer to {_asked(probe)}: {answer.error}"


def _wanted_status(probe: Probe) -> int:
    if probe.kind == "command":
        return 0
    return probe.request.status if probe.request is not None else 200


def _status(probe: Probe) -> str:
    return "exit code" if probe.kind == "command" else "status"


def _asked(probe: Probe) -> str:
    return repr(shortened(probe.prompt))


def _start(body: bytes) -> str:
    """The beginning, on one line: pages and programs end theirs as they like."""
    return " ".join(body[:200].decode(errors="replace").split())


def _faults(probe: Probe, answer: Answer) -> Iterator[str]:
    if probe.generates:
        yield from _generated_faults(probe, answer)
    elif probe.kind == "embeddings" and not _is_vector(answer.body):
        yield f"{_asked(probe)} got no vector of numbers: {_start(answer.body)}"
    text = _text(probe, answer) or ""
    if probe.expect is not None and probe.expect.casefold() not in text.casefold():
        yield f"{_asked(probe)} got {shortened(text)!r}, expected {probe.expect!r}"
    yield from _expressions(probe, text)
    for path, wanted in probe.expect_json:
        found = _at(answer.body, path)
        if found != wanted:
            yield f"{_asked(probe)} got {shortened(found or 'nothing')} at {path}, expected {wanted}"


def _generated_faults(probe: Probe, answer: Answer) -> Iterator[str]:
    said = generated(answer.body)
    if said is None:
        yield f"{_asked(probe)} got status {answer.status}: {_start(answer.body)}"
    elif not said.whole.strip():
        yield f"{_asked(probe)} got an empty answer"
    else:
        scripts = _scripts(probe)
        for where, text in (("answers junk", said.content), ("thinks junk", said.reasoning)):
            what = junk(text, scripts, probe.limits or Limits())
            if what is not None:
                yield f"{where}: {what}; {_asked(probe)} got {shortened(text)!r}"


def _scripts(probe: Probe) -> frozenset[str]:
    """Those that are expected: declared, or else Latin and what the question and the wanted answer are written in."""
    return frozenset(probe.scripts) or scripts_of(f"{probe.prompt} {probe.expect or ''}") | {"Latin"}


def _expressions(probe: Probe, text: str) -> Iterator[str]:
    for pattern, is_wanted in ((probe.expect_regex, True), *((item, False) for item in probe.never)):
        if pattern is None:
            continue
        try:
            matches = _search(pattern, text)
        except TimeoutError:
            yield f"/{pattern}/ takes more than {PATIENCE_S:g} s on the answer to {_asked(probe)}: write it simpler"
            continue
        if matches is None and is_wanted:
            yield f"{_asked(probe)} got {shortened(text)!r}, expected '/{pattern}/'"
        elif matches is not None and not is_wanted:
            yield f"{_asked(probe)} got {shortened(text)!r}, of which {matches!r} must never come (/{pattern}/)"


def _search(pattern: str, text: str) -> str | None:
    """What the expression matches first. Raises TimeoutError when it takes too long: `re` could not be ended."""
    import regex  # noqa: PLC0415 - 15 ms that only a probe with expressions needs

    found = regex.search(pattern, text[:LONGEST_TEXT], timeout=PATIENCE_S)
    return None if found is None else shortened(found.group())


def _text(probe: Probe, answer: Answer) -> str | None:
    if probe.generates:
        return answer_text(answer.body)
    return None if probe.kind == "embeddings" else answer.body[:LONGEST_TEXT].decode(errors="replace")


def _is_vector(body: bytes) -> bool:
    """Whether it has at least one vector of finite numbers that are not all zero."""
    try:
        vector = json.loads(body)["data"][0]["embedding"]
        return any(vector) and all(math.isfinite(number) for number in vector)
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError, OverflowError):
        return False


def _at(body: bytes, path: str) -> str | None:
    """The JSON text of what is at a path of keys and numbers of items; None when nothing is."""
    try:
        found = json.loads(body)
        for key in path.split("."):
            found = found[int(key)] if isinstance(found, list) else found[key]
    except (ValueError, TypeError, KeyError, IndexError, RecursionError):
        return None
    return canonical_json(found)
