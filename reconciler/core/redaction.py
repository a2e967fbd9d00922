"""Takes the values of secrets out of texts, in every spelling that programs commonly give them."""

import base64
import functools
import json
import re
from collections.abc import Callable, Iterable, Iterator
from urllib.parse import quote, quote_plus

SHORTEST_HIDDEN = 6
"""Characters. A shorter value is hidden only behind the name of its variable: elsewhere that would tear words apart,
and the gaps would tell what it is.
"""

REDACTED = "[redacted]"


def redactor(pairs: Iterable[tuple[str, str]]) -> Callable[[str], str]:
    """A function that takes these values out of a text. `pairs`: name of the variable and its value."""
    known = sorted({(name, value) for name, value in pairs if value})
    if not known:
        return lambda text: text
    long = {form for _, value in known for form in _forms(value) if len(form) >= SHORTEST_HIDDEN}
    ordered = sorted(long, key=lambda form: (-len(form), form))
    anywhere = re.compile("|".join(map(re.escape, ordered))) if ordered else None
    named = [_behind_its_name(name, value) for name, value in known if len(value) < SHORTEST_HIDDEN]
    return functools.partial(_redacted, anywhere, named)


def _redacted(anywhere: "re.Pattern[str] | None", named: "list[re.Pattern[str]]", text: str) -> str:
    hidden = anywhere.sub(REDACTED, text) if anywhere else text
    for pattern in named:
        hidden = pattern.sub(rf"\1{REDACTED}", hidden)
    return hidden


def _behind_its_name(name: str, value: str) -> "re.Pattern[str]":
    """NAME=value, NAME: value, "NAME": "value", 'NAME', 'value'."""
    return re.compile(rf"""(\b{re.escape(name)}["']?\s*[=:,]\s*["']?){re.escape(value)}(?!\w)""")


def _forms(value: str) -> Iterator[str]:
    """The value, each of its lines (texts are shown by line), and how JSON, URLs, Python and base64 write it."""
    yield value
    yield from (line.strip() for line in value.splitlines())
    for is_ascii in (True, False):
        yield json.dumps(value, ensure_ascii=is_ascii)[1:-1]
        yield json.dumps(value, ensure_ascii=is_ascii)[1:-1].replace("/", "\\/")
    yield repr(value)[1:-1]
    yield repr(value.encode())[2:-1]
    yield from (quote(value), quote(value, safe=""), quote_plus(value))
    yield re.sub(r"%[0-9A-F]{2}", lambda code: code[0].lower(), quote(value, safe=""))
    yield from _in_base64(value.encode())


def _in_base64(value: bytes) -> Iterator[str]:
    """Its base64, alone and at any place of a longer text (as of USER:VALUE), without the digits it shares there."""
    for before in range(3):
        coded = base64.b64encode(b"\0" * before + value).decode()
        first, shared = -(-before * 4 // 3), (before + len(value)) % 3
        inner = coded.rstrip("=")[first : -1 if shared else None]
        yield from (inner, inner.replace("+", "-").replace("/", "_"))
    alone = base64.b64encode(value).decode().rstrip("=")
    yield from (alone, alone.replace("+", "-").replace("/", "_"))
