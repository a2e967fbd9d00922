"""What a registry wants to see before it answers: a token of its token server, or a user name and password.

The login goes to the registry itself and to the token server that the registry names, and nowhere else.
"""

import base64
import re
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from reconciler.images.errors import SupplyError, SupplyErrorKind
from reconciler.images.logins import FoundLogin, Login

if TYPE_CHECKING:
    import httpx

SHORTEST_TOKEN_S = 60.0
"""What the token protocol promises where a token server does not say."""

CLIENT = "fleet"

_PARAMETER = re.compile(r'(\w+)=(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+))')


@dataclass(frozen=True)
class Challenge:
    """What the registry asked for: the scheme in lower case, and its parameters."""

    scheme: str
    parameters: Mapping[str, str]


def challenges(headers: Iterable[str]) -> tuple[Challenge, ...]:
    """The challenges of `WWW-Authenticate` headers."""
    found = []
    for header in headers:
        scheme, _, rest = header.strip().partition(" ")
        pairs = {match[1].lower(): match[2] or match[3] or "" for match in _PARAMETER.finditer(rest)}
        found.append(Challenge(scheme.lower(), pairs))
    return tuple(found)


class Access:
    """The `Authorization` headers for one registry, by repository. Used by several threads at once."""

    def __init__(self, url: str, host: str, find_login: Callable[[str], FoundLogin]) -> None:
        self._url, self._host, self._find_login = url, host, find_login
        self._headers: dict[str, tuple[str, float]] = {}
        self._lock = threading.Lock()
        self._found: FoundLogin | None = None

    def header(self, repository: str) -> str | None:
        """What to send, where that is known and still good."""
        header, until_s = self._headers.get(repository, (None, 0.0))
        return header if time.monotonic() < until_s else None

    def renewed(self, client: "httpx.Client", repository: str, asked: Iterable[str], used: str | None) -> str:
        """What to send after the registry refused `used` with these challenges. Raises `SupplyError`."""
        with self._lock:
            header = self.header(repository)
            if header is None or header == used:
                header, lasts_s = self._made(client, repository, challenges(asked), used)
                self._headers[repository] = (header, time.monotonic() + lasts_s)
            return header

    def denied(self, repository: str) -> SupplyError:
        """It does not answer even so."""
        login = self._login()
        message = f"{self._url} does not give out {repository}{f' to {login.username}' if login else ''}"
        remark = self._found.remark if self._found else ""
        hint = f"`docker login {self._host}` logs in; some registries also say this of what they do not have"
        return SupplyError(SupplyErrorKind.DENIED, message, f"{remark}{remark and '; '}{hint}")

    def _login(self) -> Login | None:
        if self._found is None:
            self._found = self._find_login(self._host)
        return self._found.login

    def _made(
        self, client: "httpx.Client", repository: str, asked: tuple[Challenge, ...], used: str | None
    ) -> tuple[str, float]:
        login = self._login()
        for challenge in asked:
            if challenge.scheme == "bearer" and "realm" in challenge.parameters:
                return self._token(client, repository, challenge.parameters)
        wants_password = any(challenge.scheme == "basic" for challenge in asked)
        if wants_password and login is not None and login.password and _basic(login) != used:
            return _basic(login), float("inf")
        raise self.denied(repository)

    def _token(self, client: "httpx.Client", repository: str, asked: Mapping[str, str]) -> tuple[str, float]:
        login, realm = self._login(), asked["realm"]
        if urlsplit(realm).scheme != "https" and urlsplit(self._url).scheme == "https":
            message = f"{self._url} wants the login sent unencrypted, to {urlsplit(realm).hostname}"
            raise SupplyError(SupplyErrorKind.REFUSED, message, "the registry is set up wrong, or it is not the one")
        scope = asked.get("scope") or f"repository:{repository}:pull"
        told = {"service": asked.get("service", ""), "scope": scope}
        if login is not None and login.identity_token:
            secret = {"grant_type": "refresh_token", "refresh_token": login.identity_token, "client_id": CLIENT}
            response = client.post(realm, data={**told, **secret}, follow_redirects=False)  # the body is a secret
        else:
            headers = {"Authorization": _basic(login)} if login is not None else {}
            response = client.get(realm, params=told, headers=headers)
        if response.status_code in {400, 401, 403, 404}:
            raise self.denied(repository)
        response.raise_for_status()
        return self._read(_json(response), realm)

    def _read(self, found: Mapping[str, Any], realm: str) -> tuple[str, float]:
        token = found.get("token") or found.get("access_token")
        if not isinstance(token, str) or not token.isprintable():
            raise SupplyError(SupplyErrorKind.REFUSED, f"{urlsplit(realm).hostname} gave no token for {self._url}")
        lasts_s = found.get("expires_in")
        given = float(lasts_s) if isinstance(lasts_s, (int, float)) and lasts_s > 0 else SHORTEST_TOKEN_S
        return f"Bearer {token}", given * 0.8


def _basic(login: Login) -> str:
    return f"Basic {base64.b64encode(f'{login.username}:{login.password}'.encode()).decode()}"


def _json(response: "httpx.Response") -> Mapping[str, Any]:
    try:
        found = response.json()
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
