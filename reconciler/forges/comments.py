"""One comment of our own, edited in place: a push a minute must not make a comment a minute."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from reconciler.forges.client import Session
from reconciler.forges.errors import ForgeError
from reconciler.forges.texts import field, items, number_of

BODY_BYTES = 65_535
"""What every one of the forges takes: GitHub refuses more than 65,536 characters, some stores of Forgejo more bytes."""
MARK = "<!-- fleet -->"
"""The first line of a comment that brings none of its own."""
CUT = "\n\n... cut: a comment takes no more\n"


@dataclass(frozen=True)
class Comment:
    """A comment that is there. `edit`: where it is edited; `author`: who wrote it."""

    edit: str
    author: str
    body: str


@dataclass(frozen=True)
class Thread:
    """Where comments are: `path` to make one, `key` of the text in a request, `method` of an edit, and who reads them.

    `read` makes comments of what the forge lists. `is_paged`: whether the list comes by pages.
    """

    path: str
    read: Callable[[Sequence[Any]], Iterator[Comment]]
    method: str = "PATCH"
    is_paged: bool = True


def below(path: str, *author: str) -> Callable[[Sequence[Any]], Iterator[Comment]]:
    """Reads comments that are edited at `path`/id. `author`: the keys under which a comment has who wrote it."""

    def read(listed: Sequence[Any]) -> Iterator[Comment]:
        for item in listed:
            if (number := number_of(item, "id")) is not None:
                yield Comment(f"{path}/{number}", str(field(item, *author) or ""), str(field(item, "body") or ""))

    return read


async def whose(session: Session, key: str) -> str:
    """Whose token it is; empty where that is not told: a token may be good for one repository and nothing else."""
    try:
        return str(field(await session.get("/user"), key) or "")
    except ForgeError as error:
        if error.status in {401, 403, 404}:
            return ""
        raise


async def put(session: Session, thread: Thread, is_ours: Callable[[Comment], bool], body: str) -> None:
    """Edit our comment with the mark of this one, or make one. Raises `ForgeError`.

    When the answer to a new one is lost, it is looked for: it may be there.
    """
    text = fitting(body)
    try:
        await _put(session, thread, is_ours, text)
    except ForgeError as error:
        if not error.is_unsure:
            raise
        await _put(session, thread, is_ours, text)


async def _put(session: Session, thread: Thread, is_ours: Callable[[Comment], bool], text: str) -> None:
    mark = text.partition("\n")[0]
    listed = await (session.pages(thread.path) if thread.is_paged else session.get(thread.path))
    found = [item for item in thread.read(items(listed)) if item.body.partition("\n")[0].rstrip() == mark]
    ours = next((item for item in reversed(found) if is_ours(item)), None)
    if ours is None:
        await session.send("POST", thread.path, {"body": text}, can_repeat=False)
    elif ours.body.replace("\r\n", "\n").strip() != text.strip():  # some forges cut blanks off
        await session.send(thread.method, ours.edit, {"body": text}, can_repeat=True)


def fitting(body: str) -> str:
    """The text of a comment: its mark first, and no longer than a forge takes."""
    text = body if body.startswith("<!--") else f"{MARK}\n{body}"
    coded = text.encode("utf-8", "replace")
    if len(coded) <= BODY_BYTES:
        return coded.decode()
    return coded[: BODY_BYTES - len(CUT)].decode("utf-8", "ignore").rpartition("\n")[0] + CUT
