"""GitHub: https://docs.github.com/rest, version 2022-11-28 of it.

* `POST /repos/{owner}/{repo}/statuses/{sha}`: https://docs.github.com/rest/commits/statuses
* `GET /repos/{owner}/{repo}/commits/{sha}/pulls`: https://docs.github.com/rest/commits/commits
* comments of requests: https://docs.github.com/rest/issues/comments, of commits: https://docs.github.com/rest/commits/comments
"""

from typing import Any

from reconciler.forges import statuses
from reconciler.forges.client import Client, Session
from reconciler.forges.comments import Thread, below, put, whose
from reconciler.forges.protocol import State
from reconciler.forges.texts import checked_commit, number_of

DESCRIPTION = 140
"""Characters; a longer description is refused with 422."""
HEADERS = {"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28"}


def dress(token: str) -> dict[str, str]:
    """The header that carries the token."""
    return {"Authorization": f"Bearer {token}"}


class GitHub:
    """See `Forge`. `repo`: owner/name."""

    def __init__(self, client: Client, repo: str) -> None:
        self._client, self._path = client, f"/repos/{repo}"

    async def set_status(self, commit: str, context: str, state: State, description: str, url: str = "") -> None:
        """See `Forge.set_status`."""
        await statuses.post(self._client, self._path, commit, context, state, description, url, DESCRIPTION)

    async def comment(self, commit: str, body: str) -> None:
        """See `Forge.comment`."""
        path = f"{self._path}/commits/{checked_commit(commit)}"
        async with self._client.operation() as session:
            request = _request(await session.get(f"{path}/pulls"), commit)
            thread = self._of_request(request) if request else self._thread(f"{path}/comments", "/comments")
            await _put(session, thread, body)

    async def comment_on(self, request: int, body: str) -> None:
        """See `Forge.comment_on`."""
        async with self._client.operation() as session:
            await _put(session, self._of_request(request), body)

    def _of_request(self, number: int) -> Thread:
        """Comments on a pull request as a whole are those of its issue."""
        return self._thread(f"{self._path}/issues/{number}/comments", "/issues/comments")

    def _thread(self, path: str, edits: str) -> Thread:
        return Thread(path, below(f"{self._path}{edits}", "user", "login"))


async def _put(session: Session, thread: Thread, body: str) -> None:
    me = await whose(session, "login")
    # The token of a job is a bot's, and may not ask who it is.
    await put(session, thread, lambda item: item.author == me if me else item.author.endswith("[bot]"), body)


def _request(found: Any, commit: str) -> int | None:
    """The pull request that brought a commit: the one that it is the merge of, or else an open one, or any."""
    requests = [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []
    ranked = sorted(requests, key=lambda item: (item.get("merge_commit_sha") != commit, item.get("state") != "open"))
    return next((number for item in ranked if (number := number_of(item, "number")) is not None), None)
