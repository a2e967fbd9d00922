"""What a simulated engine answers over HTTP, in the shapes of the OpenAI API. Pure."""

import json
from collections.abc import Mapping

from reconciler.nodes.protocols import HttpReply
from reconciler.testing.containers import SimContainer

COMPLETIONS = {"/v1/chat/completions", "/v1/completions"}
Body = Mapping[str, object] | None


def reply(found: SimContainer, method: str, path: str, body: Body, *, is_whole: bool) -> HttpReply | None:
    """The answer; None when it never comes. `is_whole`: whether all its other ranks run."""
    if found.behaviour.model is None:
        return _error(404, "this program serves no model")
    if not found.is_ready:
        return _error(503, "Loading model")
    if (method, path) == ("GET", "/health"):
        return _json(200, {"status": "ok"})
    if (method, path) == ("GET", "/v1/models"):
        return _json(200, {"object": "list", "data": [{"id": found.behaviour.model, "object": "model"}]})
    if method == "POST" and path in COMPLETIONS:
        return _complete(found, path, body or {}, is_whole=is_whole)
    return _error(404, f"no {method} {path}")


def _complete(found: SimContainer, path: str, body: Mapping[str, object], *, is_whole: bool) -> HttpReply | None:
    model = body.get("model", found.behaviour.model)
    if model != found.behaviour.model:
        return _error(404, f"The model `{model}` does not exist.")
    if not is_whole:
        return _error(500, "a rank has died")
    text = found.behaviour.generate(_prompt(body))
    thoughts = found.behaviour.think(_prompt(body))
    if text is None:
        return None
    return _json(200, {**_completion(path, str(model), text, thoughts), "usage": _usage(body, text)})


def takes_s(found: SimContainer, body: Body) -> float:
    """How long it writes at an answer, in seconds."""
    rate = found.behaviour.tokens_s
    return _tokens(body or {}, "") / rate if rate and body and "max_tokens" in body else 0.0


def _usage(body: Mapping[str, object], text: str) -> dict[str, object]:
    """A word is a token here."""
    return {"prompt_tokens": len(_prompt(body).split()), "completion_tokens": _tokens(body, text)}


def _tokens(body: Mapping[str, object], text: str) -> int:
    wanted = int(str(body.get("max_tokens", 16)))
    return wanted if body.get("ignore_eos") else min(wanted, len(text.split()))


def _prompt(body: Mapping[str, object]) -> str:
    messages = body.get("messages")
    if not isinstance(messages, list):
        return str(body.get("prompt", ""))
    return str(messages[-1]["content"]) if messages else ""


def _completion(path: str, model: str, text: str, thoughts: str) -> dict[str, object]:
    is_chat = path == "/v1/chat/completions"
    message = {"role": "assistant", "content": text or None, "reasoning_content": thoughts or None}
    content: dict[str, object] = {"message": message} if is_chat else {"text": text}
    choice = {"index": 0, "finish_reason": "stop", **content}
    kind = "chat.completion" if is_chat else "text_completion"
    return {"id": "simulated", "object": kind, "created": 0, "model": model, "choices": [choice]}


def _error(status: int, message: str) -> HttpReply:
    return _json(status, {"error": {"code": status, "message": message}})


def _json(status: int, value: object) -> HttpReply:
    return HttpReply(status, json.dumps(value).encode())
