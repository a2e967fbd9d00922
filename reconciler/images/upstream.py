"""A registry as the controller reaches it (OCI distribution, `GET /v2/...`): documents and blobs by digest, and tags.

Blocking, for threads. What it says is believed where it hashes to what was asked, and nowhere else.
"""

import json
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlsplit

from reconciler.images.access import Access
from reconciler.images.documents import LARGEST_DOCUMENT, MANIFESTS, digest_of
from reconciler.images.errors import SupplyError, SupplyErrorKind
from reconciler.images.logins import DOCKER_HUB, FoundLogin, find_login

if TYPE_CHECKING:
    import httpx

T = TypeVar("T")

CONNECT_S = 5.0
SILENCE_S = 30.0
"""Without a byte: then it is given up."""

PAUSES_S = (0.5, 1.5, 4.0)
"""Before each new try, where another try may help."""

PATIENCE_S = 15.0
"""No new try begins after that."""

CERTIFICATES = Path("/etc/docker/certs.d")

_ANY_MANIFEST = ", ".join(MANIFESTS)


class PassingError(SupplyError):
    """Another try may help. `wait_s`: what the registry asked for."""

    def __init__(self, message: str, hint: str = "", wait_s: float = 0.0) -> None:
        super().__init__(SupplyErrorKind.NO_ANSWER, message, hint)
        self.wait_s = wait_s


def endpoint_url(registry: str, endpoints: Mapping[str, str]) -> str:
    """Where a registry is asked: as declared; else https at its own name, or http on the controller's loopback."""
    if registry in endpoints:
        return endpoints[registry].rstrip("/")
    if registry == DOCKER_HUB:
        return "https://registry-1.docker.io"
    return f"{'http' if is_loopback(urlsplit(f'//{registry}').hostname or '') else 'https'}://{registry}"


def is_loopback(host: str) -> bool:
    """Whether `host` means the machine itself."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class Upstream:
    """A registry. `host` is its name in image references, by which logins and certificates are found."""

    def __init__(self, url: str, host: str, login: Callable[[str], FoundLogin] = find_login) -> None:
        self._url, self._host = url.rstrip("/"), host
        self._access = Access(self._url, host, login)
        self._lock = threading.Lock()
        self._made: httpx.Client | None = None
        self._configs: set[str] = set()

    @property
    def name(self) -> str:
        """Its URL."""
        return self._url

    def resolve(self, repository: str, tag: str) -> str:
        """The digest a tag has now, from the bytes it stands for. Raises `SupplyError`."""
        return digest_of(self._patiently(partial(self._read, repository, f"manifests/{tag}")))

    def document(self, repository: str, digest: str) -> bytes:
        """A manifest, an index or a config, whole, and verified by its digest. Raises `SupplyError`."""
        kinds = ("blobs", "manifests") if digest in self._configs else ("manifests", "blobs")
        try:
            data = self._patiently(partial(self._read, repository, f"{kinds[0]}/{digest}"))
        except SupplyError as error:
            if error.kind is not SupplyErrorKind.NOT_FOUND:
                raise
            data = self._patiently(partial(self._read, repository, f"{kinds[1]}/{digest}"))
        if digest_of(data) != digest:
            message = f"what {self._url} sent for {digest} is something else"
            raise SupplyError(SupplyErrorKind.DAMAGED, message, "the registry, or a proxy before it, is broken")
        self._note_config(data)
        return data

    @contextmanager
    def blob(self, repository: str, digest: str, offset: int = 0) -> Iterator[Iterator[bytes]]:
        """The bytes of a blob from `offset` on, not verified, as they come. Raises `SupplyError`."""
        headers = {"Range": f"bytes={offset}-"} if offset else {}
        opened = self._patiently(partial(self._opened, repository, f"blobs/{digest}", headers))
        with closing(opened) as response:
            starts = f"bytes {offset}-"
            begins = response.status_code == 206 and response.headers.get("Content-Range", "").startswith(starts)
            if offset and not begins:
                message = f"{self._url} cannot go on in the middle of {digest}"
                raise SupplyError(SupplyErrorKind.REFUSED, message, "it is fetched from its beginning")
            yield self._chunks(response)

    def close(self) -> None:
        """End its connections."""
        with self._lock:
            if self._made is not None:
                self._made.close()
                self._made = None

    # asking

    def _patiently(self, call: Callable[[], T]) -> T:
        """What `call` gives, after some more tries where those may help."""
        began_s = time.monotonic()
        for pause_s in PAUSES_S:
            try:
                return call()
            except PassingError as error:
                wait_s = max(pause_s, error.wait_s)
                if time.monotonic() - began_s + wait_s + CONNECT_S > PATIENCE_S:
                    raise
                time.sleep(wait_s)
        return call()

    def _read(self, repository: str, path: str) -> bytes:
        """A whole document, from memory's point of view."""
        data = bytearray()
        with closing(self._opened(repository, path, {"Accept": _ANY_MANIFEST})) as response:
            for chunk in self._chunks(response):
                data += chunk
                if len(data) > LARGEST_DOCUMENT:
                    message = f"{response.url} sends more than {LARGEST_DOCUMENT // 2**20} MiB: that is no manifest"
                    raise SupplyError(SupplyErrorKind.DAMAGED, message)
        return bytes(data)

    def _chunks(self, response: "httpx.Response") -> Iterator[bytes]:
        import httpx  # noqa: PLC0415 - 50 ms, and most commands ask no registry

        try:
            yield from response.iter_raw()
        except (httpx.HTTPError, httpx.StreamError) as error:
            raise self._broken(error) from error

    def _opened(self, repository: str, path: str, headers: Mapping[str, str]) -> "httpx.Response":
        """An answer with what was asked for; its bytes are still to come. Raises `SupplyError`."""
        import httpx  # noqa: PLC0415 - as above

        try:
            response = self._answer(repository, path, headers)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise self._broken(error) from error
        if response.status_code in {200, 206}:
            return response
        response.close()
        raise self._refusal(repository, path, response)

    def _answer(self, repository: str, path: str, headers: Mapping[str, str]) -> "httpx.Response":
        """Asked once, and once more with what it wants to see."""
        used = self._access.header(repository)
        response = self._sent(repository, path, headers, used)
        if response.status_code != 401 or response.url.host != urlsplit(self._url).hostname:
            return response
        response.close()
        asked = response.headers.get_list("WWW-Authenticate")
        renewed = self._access.renewed(self._client(), repository, asked, used)
        return self._sent(repository, path, headers, renewed)

    def _sent(
        self, repository: str, path: str, headers: Mapping[str, str], authorization: str | None
    ) -> "httpx.Response":
        """To the end of its redirects. httpx takes the authorization away where one leads to another host."""
        client = self._client()
        own = {**headers, **({"Authorization": authorization} if authorization else {})}
        return client.send(client.build_request("GET", f"{self._url}/v2/{repository}/{path}", headers=own), stream=True)

    def _refusal(self, repository: str, path: str, response: "httpx.Response") -> SupplyError:
        status, where = response.status_code, f"{self._url}/v2/{repository}/{path}"
        if status == 404:
            return SupplyError(SupplyErrorKind.NOT_FOUND, f"{where} is not there", "check the name and the tag")
        if status in {401, 403}:
            return self._access.denied(repository)
        if status == 429 or status >= 500:
            hint = "wait, or log in: registries let those do more" if status == 429 else "try again later"
            return PassingError(f"{where} answers with status {status}", hint, _wait_s(response))
        return SupplyError(SupplyErrorKind.REFUSED, f"{where} answers with status {status}")

    def _broken(self, error: Exception) -> SupplyError:
        """No answer, or one that broke off."""
        import httpx  # noqa: PLC0415 - as above

        reason = f"{self._url}: {str(error) or type(error).__name__}"
        if "CERTIFICATE_VERIFY_FAILED" in reason:
            hint = f"put the certificate of its authority into {CERTIFICATES / self._host / 'ca.crt'}"
            return SupplyError(SupplyErrorKind.NO_ANSWER, reason, hint)
        if isinstance(error, httpx.TransportError) and not isinstance(error, httpx.UnsupportedProtocol):
            return PassingError(reason, f"registries.{self._host}.endpoint of the spec says where it is reached")
        return PassingError(reason) if _is_passing(error) else SupplyError(SupplyErrorKind.REFUSED, reason)

    # its client

    def _client(self) -> "httpx.Client":
        import httpx  # noqa: PLC0415 - as above

        with self._lock:
            if self._made is None:
                self._made = httpx.Client(
                    verify=self._trust(),
                    trust_env=not is_loopback(urlsplit(self._url).hostname or ""),
                    timeout=httpx.Timeout(SILENCE_S, connect=CONNECT_S, pool=None),
                    limits=httpx.Limits(max_connections=None, max_keepalive_connections=16),
                    follow_redirects=True,
                    headers={"Accept-Encoding": "identity", "User-Agent": "fleet"},
                )
            return self._made

    def _trust(self) -> ssl.SSLContext:
        """The system's authorities, and those that Docker was told to trust for this registry."""
        context = ssl.create_default_context()
        for path in sorted((CERTIFICATES / self._host).glob("*.crt")):
            with suppress(OSError):  # no certificate: the registry's own is then refused, with a hint
                context.load_verify_locations(path)
        return context

    def _note_config(self, data: bytes) -> None:
        """Configs are asked for as blobs: registries count the questions for manifests."""
        with suppress(ValueError, TypeError, KeyError, RecursionError):
            self._configs.add(str(json.loads(data)["config"]["digest"]))


def _is_passing(error: Exception) -> bool:
    """Whether a token server had trouble of its own."""
    response = getattr(error, "response", None)
    return response is not None and (response.status_code == 429 or response.status_code >= 500)


def _wait_s(response: "httpx.Response") -> float:
    text = str(response.headers.get("Retry-After", ""))
    return float(text) if text.isascii() and text.isdigit() else 0.0
