"""The status of a commit where the API is shaped as GitHub's: Forgejo and Gitea took it over."""

from reconciler.forges.client import Client
from reconciler.forges.protocol import State
from reconciler.forges.texts import checked_commit, line, link


async def post(
    client: Client, repository: str, commit: str, context: str, state: State, description: str, url: str, most: int
) -> None:
    """Set it. `repository`: its path in the API; `most`: characters of a description. Raises `ForgeError`."""
    body = {"state": state, "context": context, "description": line(description, most), **link(url)}
    async with client.operation() as session:
        await session.send("POST", f"{repository}/statuses/{checked_commit(commit)}", body, can_repeat=True)
