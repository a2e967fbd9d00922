"""Forges: what became of a commit, told where people look at it. See `Forge`.

Nothing of a fleet depends on a forge: each failure is a `ForgeError`, and whoever tells one only warns.
"""

import specs
from reconciler.forges import forgejo, github, gitlab
from reconciler.forges.client import Client
from reconciler.forges.errors import ForgeError
from reconciler.forges.protocol import Forge, State

__all__ = ["Forge", "ForgeError", "State", "forge_of"]


def forge_of(settings: specs.Forge) -> Forge:
    """The forge of a spec. Nothing is asked of it, and the token is not looked up, before it is told something."""
    address, reference = settings.address, settings.token.secret
    if settings.kind == "github":
        return github.GitHub(Client(_root(address, "/api/v3"), reference, github.HEADERS, github.dress), settings.repo)
    if settings.kind == "gitlab":
        return gitlab.GitLab(Client(_root(address, "/api/v4"), reference, {}, gitlab.dress), settings.repo)
    return forgejo.Forgejo(Client(_root(address, "/api/v1"), reference, forgejo.HEADERS, forgejo.dress), settings.repo)


def _root(address: str, path: str) -> str:
    """Where the API is: below the address of the forge, or the address itself when it names the API."""
    if address in {"https://github.com", "https://api.github.com"}:
        return "https://api.github.com"
    return address if address.endswith(path) else f"{address}{path}"
