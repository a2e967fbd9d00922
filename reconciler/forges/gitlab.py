"""GitLab: https://docs.gitlab.com/api/rest/, version 4.

* `POST /projects/:id/statuses/:sha`, `GET /projects/:id/repository/commits/:sha/statuses` and `.../merge_requests`:
  https://docs.gitlab.com/api/commits/
* notes of merge requests: https://docs.gitlab.com/api/notes/, comments of commits that can be edited:
  https://docs.gitlab.com/api/discussions/
"""

from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import quote

from reconciler.forges.client import Client, Session
from reconciler.forges.comments import Comment, Thread, below, put, whose
from reconciler.forges.errors import ForgeError
from reconciler.forges.protocol import State
from reconciler.forges.texts import checked_commit, field, items, line, link, number_of

DESCRIPTION = 255
"""Characters of a text in its database; a longer description is refused."""
STATES: dict[State, str] = {"pending": "running", "success": "success", "failure": "failed", "error": "failed"}


def dress(token: str) -> dict[str, str]:
    """The header that carries the token."""
    return {"PRIVATE-TOKEN": token}


class GitLab:
    """See `Forge`. `repo`: group/name, with subgroups between."""

    def __init__(self, client: Client, repo: str) -> None:
        self._client, self._path = client, f"/projects/{quote(repo, safe='')}"

    async def set_status(self, commit: str, context: str, state: State, description: str, url: str = "") -> None:
        """See `Forge.set_status`.

        Many versions refuse to set the state that a status has already, with 400: then it is looked at.
        """
        sha = checked_commit(commit)
        body = {"state": STATES[state], "name": context, "description": line(description, DESCRIPTION), **link(url)}
        async with self._client.operation() as session:
            try:
                await session.send("POST", f"{self._path}/statuses/{sha}", body, can_repeat=True)
            except ForgeError as error:
                if error.status != 400 or await self._state(session, sha, context) != STATES[state]:
                    raise

    async def _state(self, session: Session, sha: str, context: str) -> str | None:
        """The state of the newest status of this name. None: there is none."""
        found = await session.get(f"{self._path}/repository/commits/{sha}/statuses", name=context, per_page=100)
        statuses = [item for item in items(found) if field(item, "name") == context]
        newest = max(statuses, key=lambda item: number_of(item, "id") or 0, default=None)
        return str(field(newest, "status")) if newest is not None else None

    async def comment(self, commit: str, body: str) -> None:
        """See `Forge.comment`."""
        path = f"{self._path}/repository/commits/{checked_commit(commit)}"
        async with self._client.operation() as session:
            request = _request(await session.get(f"{path}/merge_requests"), commit)
            await _put(session, self._of_request(request) if request else _of_commit(path), body)

    async def comment_on(self, request: int, body: str) -> None:
        """See `Forge.comment_on`."""
        async with self._client.operation() as session:
            await _put(session, self._of_request(request), body)

    def _of_request(self, number: int) -> Thread:
        path = f"{self._path}/merge_requests/{number}/notes"
        return Thread(path, lambda listed: _notes(path, listed), "PUT")


def _of_commit(path: str) -> Thread:
    """Comments of a commit can be edited as notes of its discussions alone."""

    def read(listed: Sequence[Any]) -> Iterator[Comment]:
        for item in listed:
            name = field(item, "id")
            if isinstance(name, str) and name.isalnum():
                yield from _notes(f"{path}/discussions/{name}/notes", items(field(item, "notes")))

    return Thread(f"{path}/discussions", read, "PUT")


def _notes(path: str, listed: Sequence[Any]) -> Iterator[Comment]:
    """The newest is listed first by default: they are told in the order in which they were made."""
    return below(path, "author", "username")(sorted(listed, key=lambda item: number_of(item, "id") or 0))


async def _put(session: Session, thread: Thread, body: str) -> None:
    me = await whose(session, "username")
    await put(session, thread, lambda item: not me or item.author == me, body)


def _request(found: Any, commit: str) -> int | None:
    """The merge request that brought a commit: the one that it is the merge of, or else an open one, or any."""
    requests = [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []
    merges = ("merge_commit_sha", "squash_commit_sha")
    ranked = sorted(
        requests,
        key=lambda item: (commit not in [item.get(key) for key in merges], item.get("state") != "opened"),
    )
    return next((number for item in ranked if (number := number_of(item, "iid")) is not None), None)
