"""Forgejo and Gitea: version 1 of their API, described by each instance at `/api/swagger`.

* `POST /repos/{owner}/{repo}/statuses/{sha}` (`CreateStatusOption`)
* `GET /repos/{owner}/{repo}/commits/{sha}/pull`: the merged pull request of a commit, 404 without one
* `GET` and `POST /repos/{owner}/{repo}/issues/{index}/comments`, `PATCH /repos/{owner}/{repo}/issues/comments/{id}`

There are no comments on commits: of one that no request brought, its statuses alone tell.
"""

from reconciler.forges import statuses
from reconciler.forges.client import Client, Session
from reconciler.forges.comments import Thread, below, put, whose
from reconciler.forges.errors import ForgeError
from reconciler.forges.protocol import State
from reconciler.forges.texts import checked_commit, number_of

DESCRIPTION = 255
"""Characters: no limit is documented, and more does not show."""
HEADERS = {"Accept": "application/json"}


def dress(token: str) -> dict[str, str]:
    """The header that carries the token."""
    return {"Authorization": f"token {token}"}


class Forgejo:
    """See `Forge`. `repo`: owner/name."""

    def __init__(self, client: Client, repo: str) -> None:
        self._client, self._path = client, f"/repos/{repo}"

    async def set_status(self, commit: str, context: str, state: State, description: str, url: str = "") -> None:
        """See `Forge.set_status`."""
        await statuses.post(self._client, self._path, commit, context, state, description, url, DESCRIPTION)

    async def comment(self, commit: str, body: str) -> None:
        """See `Forge.comment`."""
        path = f"{self._path}/commits/{checked_commit(commit)}/pull"
        async with self._client.operation() as session:
            try:
                request = number_of(await session.get(path), "number")
            except ForgeError as error:
                if error.status != 404:
                    raise
                return
            if request is not None:
                await self._put(session, request, body)

    async def comment_on(self, request: int, body: str) -> None:
        """See `Forge.comment_on`."""
        async with self._client.operation() as session:
            await self._put(session, request, body)

    async def _put(self, session: Session, request: int, body: str) -> None:
        me = await whose(session, "login")
        thread = Thread(
            f"{self._path}/issues/{request}/comments",
            below(f"{self._path}/issues/comments", "user", "login"),
            is_paged=False,
        )
        await put(session, thread, lambda item: not me or item.author == me, body)
