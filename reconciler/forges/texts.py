"""What goes into a request to a forge, made fit for it."""

import re
from typing import Any

from reconciler.forges.errors import ForgeError
from reconciler.views.words import one_line, shortened


def checked_commit(text: str) -> str:
    """The full name of a commit. Raises `ForgeError`: it becomes part of a path."""
    if re.fullmatch(r"[0-9a-f]{40}(?:[0-9a-f]{24})?", text):
        return text
    raise ForgeError("a forge is told of whole commits: 40 or 64 digits")


def line(text: str, limit: int) -> str:
    """One line of at most `limit` characters, without those beyond the first plane, which old forges refuse."""
    plain = "".join(char if ord(char) <= 0xFFFF else "?" for char in one_line(" ".join(text.split())))
    return shortened(plain, limit)


def link(url: str) -> dict[str, str]:
    """The field of a status that leads somewhere: a web address as it is, nothing for any other text."""
    return {"target_url": url} if re.fullmatch(r"https?://[!-~]{1,240}", url) else {}


def field(item: Any, *keys: str) -> Any:
    """What is at a path of keys of a JSON value; None where there is no such thing."""
    for key in keys:
        item = item.get(key) if isinstance(item, dict) else None
    return item


def items(value: Any) -> list[Any]:
    """The items of a JSON list; none of any other value: what is in front of a forge answers in its place, at times."""
    return value if isinstance(value, list) else []


def number_of(item: Any, key: str) -> int | None:
    """A whole number of a JSON object: ids become parts of paths."""
    value = field(item, key)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
