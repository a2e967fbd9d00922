"""Markdown that a name or a value from outside cannot break."""

import re

from reconciler.views.words import one_line

_SIGNS = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "`": "'"} | {sign: f"\\{sign}" for sign in "\\|[]*_~"})
_CALLS = re.compile(r"(?<!\w)@(?=\w)|#(?=\d)")
"""What a forge would make a notification of: a person or an issue. (An image's `name@sha256:...` is neither.)"""


def cell(text: str) -> str:
    """Text that cannot leave its line or table cell, start markup of its own, or call anybody."""
    marked = one_line(" ".join(text.splitlines())).translate(_SIGNS)
    return _CALLS.sub(lambda match: f"{match[0]}&#8203;", marked)


def code(text: str) -> str:
    """A name or value as a code span. In a table, a backslash before a pipe would free the pipe: a blank parts them."""
    safe = one_line(text).replace("`", "'").replace("\\|", "\\ |").replace("|", "\\|")
    return f"`{safe}`" if safe else ""
