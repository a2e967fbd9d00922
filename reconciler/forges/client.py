"""HTTP to a forge: one operation at a time, each within its time, and the token in nothing but a header.

A forge that is away, busy or gone is asked again a few times, as it says (`Retry-After`, and the rate limits of
https://docs.github.com/rest/using-the-rest-api/rate-limits-for-the-rest-api), and never for long: nobody waits for it.
Redirects are not followed: the token would go along. Proxies are those of the environment, as httpx has them.
"""

import asyncio
import json
import re
import ssl
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import httpx

from reconciler.core.redaction import redactor
from reconciler.execution.secret_sources import SecretError, value_of
from reconciler.forges.errors import ForgeError
from reconciler.forges.texts import items
from reconciler.version import version
from reconciler.views.words import one_line, shortened

OPERATION_S = 30.0
"""Of one operation, with all that is asked for it."""
REQUEST_S = 10.0
"""Of one request: to connect, and between two pieces of the answer."""
ATTEMPTS = 4
FIRST_WAIT_S = 0.5
"""Before the second attempt; doubled for each further one."""
LONGEST_WAIT_S = 10.0
"""A forge that asks to be left alone for longer is not asked again."""
ANSWER_BYTES = 8 * 2**20
"""A hundred comments of the largest size; what is longer is no answer."""
PAGE, PAGES = 100, 20
TOLD = 300
"""Characters of what a forge says of a failure."""

BUSY = frozenset({500, 502, 503, 504})


class Client:
    """A forge at its address. `headers`: what every request has; `dress`: the header that carries the token."""

    def __init__(self, root: str, reference: str, headers: Mapping[str, str], dress: Callable[[str], dict[str, str]]):
        self.root, self._reference, self._dress = root, reference, dress
        self._headers = {"User-Agent": f"fleet/{version()}", **headers}
        self._tls: ssl.SSLContext | None = None

    @asynccontextmanager
    async def operation(self) -> AsyncIterator["Session"]:
        """What is asked within `OPERATION_S`. The token is looked up anew: it may have been replaced."""
        host = urlsplit(self.root).netloc
        try:
            async with asyncio.timeout(OPERATION_S):
                token = await self._token()
                async with self._http(token) as http:
                    yield Session(http, self.root, redactor([("token", token)]))
        except TimeoutError:
            raise ForgeError(f"{host} did not take it within {OPERATION_S:g} s", is_unsure=True) from None

    async def _token(self) -> str:
        try:
            token = (await value_of(self._reference)).strip()
        except SecretError as error:
            raise ForgeError(str(error)) from None
        if not re.fullmatch(r"[!-~]+", token):  # the HTTP library's own refusal would show it
            raise ForgeError("the token of the forge holds characters that no token has")
        return token

    def _http(self, token: str) -> httpx.AsyncClient:
        if self._tls is None and self.root.startswith("https:"):
            self._tls = httpx.create_ssl_context()  # costly: once
        return httpx.AsyncClient(
            headers={**self._headers, **self._dress(token)},
            timeout=REQUEST_S,
            follow_redirects=False,
            verify=self._tls if self._tls is not None else False,  # where there is no TLS, nothing is verified
        )


@dataclass(frozen=True)
class _Answer:
    status: int
    headers: httpx.Headers
    content: bytes


class Session:
    """The requests of one operation. `hide` takes the token out of a text."""

    def __init__(self, http: httpx.AsyncClient, root: str, hide: Callable[[str], str]) -> None:
        self._http, self._root, self._hide = http, root, hide
        self._host = urlsplit(root).netloc

    async def get(self, path: str, **params: str | int) -> Any:
        """The JSON of a page. Raises `ForgeError`."""
        return await self._ask("GET", path, None, params, can_repeat=True)

    async def pages(self, path: str) -> list[Any]:
        """The items of all pages of a list, `PAGES` at most, as GitHub and GitLab number them. Raises `ForgeError`."""
        found: list[Any] = []
        for number in range(1, PAGES + 1):
            page = await self.get(path, per_page=PAGE, page=number)
            found += items(page)
            if len(items(page)) < PAGE:
                break
        return found

    async def send(self, method: str, path: str, body: Mapping[str, Any], *, can_repeat: bool) -> Any:
        """Send JSON; the JSON of the answer. `can_repeat`: whether twice is as good as once. Raises `ForgeError`."""
        return await self._ask(method, path, body, {}, can_repeat=can_repeat)

    async def _ask(
        self, method: str, path: str, body: Mapping[str, Any] | None, params: Mapping[str, Any], *, can_repeat: bool
    ) -> Any:
        for number in range(1, ATTEMPTS):
            try:
                return await self._once(method, path, body, params)
            except ForgeError as error:
                wait_s = FIRST_WAIT_S * 2 ** (number - 1) if error.wait_s is None else error.wait_s
                if not error.is_passing or (error.is_unsure and not can_repeat) or wait_s > LONGEST_WAIT_S:
                    raise
            await asyncio.sleep(wait_s)
        return await self._once(method, path, body, params)

    async def _once(self, method: str, path: str, body: Mapping[str, Any] | None, params: Mapping[str, Any]) -> Any:
        answer = await self._answer(method, f"{self._root}{path}", body, params)
        if not 200 <= answer.status < 300:
            raise self._refused(answer)
        try:
            return json.loads(answer.content) if answer.content else None
        except (ValueError, RecursionError):
            raise ForgeError(f"{self._host} answers with what is no JSON: is this its API?") from None

    async def _answer(
        self, method: str, url: str, body: Mapping[str, Any] | None, params: Mapping[str, Any]
    ) -> _Answer:
        """One request, and the whole answer to it. Raises `ForgeError` when there is none."""
        try:
            async with self._http.stream(method, url, json=body, params=params or None) as answer:
                content = bytearray()
                async for piece in answer.aiter_bytes():
                    content += piece
                    if len(content) > ANSWER_BYTES:
                        raise ForgeError(f"{self._host} answers without end", is_unsure=True)
                return _Answer(answer.status_code, answer.headers, bytes(content))
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.ProxyError) as error:
            raise ForgeError(f"{self._host} cannot be reached: {self._words(error)}", is_passing=True) from None
        except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:  # such as of a Location that is no address
            told = f"{self._host} gave no answer: {self._words(error)}"
            raise ForgeError(told, is_passing=True, is_unsure=True) from None

    def _refused(self, answer: _Answer) -> ForgeError:
        if 300 <= answer.status < 400:
            there = _place(answer.headers.get("Location", "")) or self._host
            return ForgeError(
                self._safe(f"{self._host} says that it is elsewhere ({there}): write its new place in the spec"),
                status=answer.status,
            )
        wait_s = _wait_s(answer)
        is_limited = answer.status == 429 or (answer.status == 403 and wait_s is not None)
        later = f" (it asks to be left alone for {wait_s:.0f} s)" if wait_s is not None else ""
        return ForgeError(
            self._safe(f"{self._host} answers {answer.status}{later}: {_told(answer)}"),
            status=answer.status,
            is_passing=is_limited or answer.status in BUSY,
            wait_s=wait_s,
            is_unsure=answer.status in BUSY,
        )

    def _words(self, error: Exception) -> str:
        return self._safe(str(error) or type(error).__name__)

    def _safe(self, text: str) -> str:
        return shortened(one_line(self._hide(" ".join(text.split()))), TOLD)


def _place(location: str) -> str:
    """The host of an address; empty when it names none."""
    try:
        return urlsplit(location).netloc
    except ValueError:
        return ""


def _told(answer: _Answer) -> str:
    """What a forge says of a failure: "message" of all of them, "error" of some of GitLab's, "errors" of GitHub."""
    try:
        said = json.loads(answer.content)
    except (ValueError, RecursionError):
        said = None
    if not isinstance(said, dict):
        return "no reason is given"
    parts = [said[key] for key in ("message", "error", "errors") if said.get(key)]
    return "; ".join(part if isinstance(part, str) else json.dumps(part) for part in parts) or "no reason is given"


def _wait_s(answer: _Answer) -> float | None:
    """How long a forge asks to be left alone, in seconds. None: it does not say."""
    after = answer.headers.get("Retry-After", "")
    if re.fullmatch(r"[0-9]{1,9}", after):
        return float(after)
    reset = answer.headers.get("X-RateLimit-Reset", "")
    if answer.headers.get("X-RateLimit-Remaining") == "0" and re.fullmatch(r"[0-9]{1,12}", reset):
        return max(float(reset) - time.time(), 1.0)
    return None
