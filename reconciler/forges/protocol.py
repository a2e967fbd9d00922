"""What a forge can be told, whichever it is."""

from typing import Protocol

from reconciler.views.forge_text import State

__all__ = ["Forge", "State"]


class Forge(Protocol):
    """The forge of a repository. Every method ends within `client.OPERATION_S` seconds, or raises `ForgeError`.

    Each can be repeated: a status takes the place of the one before, and so does a comment.
    """

    async def set_status(self, commit: str, context: str, state: State, description: str, url: str = "") -> None:
        """Say of a commit how it stands with `context`, such as "fleet/lab". `description` is cut to what it takes."""
        ...

    async def comment(self, commit: str, body: str) -> None:
        """Comment on the request that brought a commit, or else on the commit, where the forge knows such comments.

        `body` is Markdown. When its first line is an HTML comment, the comment of our own with that line is edited.
        """
        ...

    async def comment_on(self, request: int, body: str) -> None:
        """Comment on a pull or merge request, by its number. As `comment`."""
        ...
