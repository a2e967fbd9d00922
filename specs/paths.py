"""Paths on nodes and in containers, and the placeholders they may hold."""

import posixpath
import re
from typing import Annotated

from pydantic import AfterValidator, WithJsonSchema

from specs.diagnostics import refuse

PLACEHOLDER = re.compile(r"\{paths\.([a-z0-9][a-z0-9._-]*)\}")

_STRING = {"type": "string"}


def placeholders(text: str) -> tuple[str, ...]:
    """Return the names of the node paths that a text refers to as `{paths.NAME}`, in order."""
    return tuple(PLACEHOLDER.findall(text))


def _node_path(text: str) -> str:
    bare = PLACEHOLDER.sub("", text)
    if "{" in bare or "}" in bare:
        raise refuse(
            f"'{text[:80]}' holds a placeholder that is not known",
            "The only placeholder in a path is {paths.NAME}, a path of the node.",
        )
    if not text.startswith("/") and not PLACEHOLDER.match(text):
        raise refuse(
            f"'{text[:80]}' is not an absolute path",
            "A path on a node starts with / or with {paths.NAME}, a path of the node.",
        )
    return _no_parent(text)


def _absolute(text: str) -> str:
    if not text.startswith("/"):
        raise refuse(f"'{text[:80]}' is not an absolute path", "It is a path on the node or in the container.")
    return _no_parent(text)


def _http_path(text: str) -> str:
    if not text.startswith("/"):
        raise refuse(
            f"'{text[:80]}' is not a path on the head", "", "write it from the first / on, for example /health"
        )
    if not text.isascii() or not text.isprintable() or " " in text:
        raise refuse(f"{text[:80]!r} is not a path on the head", "It holds what no request can.", "encode it: %20")
    return text


def normal_path(text: str) -> str:
    """Return an absolute path as Docker says it back: "/m/" and "//m" are "/m"."""
    return f"/{posixpath.normpath(text).lstrip('/')}"


def _mount_target(text: str) -> str:
    if normal_path(_absolute(text)) == "/":
        raise refuse("nothing can be mounted at /", "It is the image's own root.", "name a folder below it")
    return text


def _relative(text: str) -> str:
    if not text or text.startswith("/"):
        raise refuse(f"'{text[:80]}' is not a relative path", "It names a file below the model's folder.")
    return _no_parent(text)


def _no_parent(text: str) -> str:
    if ".." in text.split("/"):
        raise refuse(f"'{text[:80]}' holds '..'", "The place a path means must be plain to see.", "write it out")
    return text


NodePath = Annotated[str, AfterValidator(_node_path), WithJsonSchema({**_STRING, "pattern": r"^(/|\{paths\.)"})]
"""An absolute path on a node, which may start with or hold {paths.NAME}."""

HttpPath = Annotated[str, AfterValidator(_http_path), WithJsonSchema({**_STRING, "pattern": "^/[!-~]*$"})]
"""What is asked of an HTTP server, a query included."""

AbsolutePath = Annotated[str, AfterValidator(_absolute), WithJsonSchema({**_STRING, "pattern": "^/"})]
"""An absolute POSIX path without '..'."""

MountTarget = Annotated[str, AfterValidator(_mount_target), WithJsonSchema({**_STRING, "pattern": "^/"})]
"""An absolute POSIX path in a container, not its root."""

RelativePath = Annotated[str, AfterValidator(_relative), WithJsonSchema({**_STRING, "pattern": "^[^/]"})]
"""A relative POSIX path without '..'."""
