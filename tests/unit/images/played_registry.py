"""A registry that runs here and plays what registries do: logins, redirects, bad days and lies."""

import base64
import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from tests.unit.images.pictures import Picture


@dataclass
class Asked:
    """A request that came: method, path, authorization and range."""

    method: str
    path: str
    authorization: str
    range: str = ""


@dataclass
class PlayedRegistry:
    """What it has, how it behaves, and what it was asked. `bad_days`: statuses of the next answers, by path."""

    blobs: dict[str, bytes] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)
    url: str = ""
    auth: str = "none"  # none, bearer, basic
    user: tuple[str, str] | None = None  # None: anybody gets a token
    refresh_token: str = ""
    token_lasts_s: int = 300
    blobs_at: str = ""  # another place that blobs are redirected to
    has_ranges: bool = True
    bad_days: dict[str, list[int]] = field(default_factory=dict)
    lies: dict[str, bytes] = field(default_factory=dict)
    cut_at: dict[str, int] = field(default_factory=dict)
    asked: list[Asked] = field(default_factory=list)
    tokens: set[str] = field(default_factory=set)

    @property
    def host(self) -> str:
        return urlsplit(self.url).netloc

    def add(self, picture: Picture, tag: str = "") -> None:
        self.blobs |= picture.blobs
        if tag:
            self.tags[tag] = picture.top

    def paths(self) -> list[str]:
        return [item.path for item in self.asked]

    def body(self, path: str) -> bytes | None:
        """Manifests are not served as blobs, nor configs and layers as manifests, as with real registries."""
        *_, kind, reference = path.split("/")
        digest = self.tags.get(reference, reference)
        data = self.blobs.get(digest)
        if data is None or (kind == "manifests") != (b'"schemaVersion"' in data):
            return None
        return self.lies.get(digest, data)

    def lets_in(self, authorization: str) -> bool:
        if self.auth == "bearer":
            return authorization.removeprefix("Bearer ") in self.tokens
        return self.auth == "none" or authorization == basic(self.user or ("", ""))


def basic(user: tuple[str, str]) -> str:
    return f"Basic {base64.b64encode(':'.join(user).encode()).decode()}"


class _Handler(BaseHTTPRequestHandler):
    registry: PlayedRegistry

    def do_GET(self) -> None:
        played, path = self.registry, urlsplit(self.path).path
        authorization = self.headers.get("Authorization", "")
        played.asked.append(Asked("GET", self.path, authorization, self.headers.get("Range", "")))
        if played.bad_days.get(path):
            self.answer(played.bad_days[path].pop(0), b"trouble")
        elif path == "/token":
            self.token(authorization in ({basic(played.user)} if played.user else {""}))
        elif not played.lets_in(authorization):
            self.refuse()
        elif "/blobs/" in path and played.blobs_at:
            self.answer(307, b"", {"Location": f"{played.blobs_at}{path}"})
        else:
            self.give(path)

    def do_POST(self) -> None:
        form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        self.registry.asked.append(Asked("POST", self.path, self.headers.get("Authorization", "")))
        self.token(form.get("refresh_token") == [self.registry.refresh_token])

    def token(self, right: bool) -> None:
        if not right:
            self.answer(401, b"{}")
            return
        token = f"token-{len(self.registry.tokens)}"
        self.registry.tokens.add(token)
        self.answer(200, json.dumps({"token": token, "expires_in": self.registry.token_lasts_s}).encode())

    def refuse(self) -> None:
        bearer = f'Bearer realm="{self.registry.url}/token",service="played",scope="repository:org/x:pull"'
        self.answer(401, b"{}", {"WWW-Authenticate": bearer if self.registry.auth == "bearer" else 'Basic realm="x"'})

    def give(self, path: str) -> None:
        data = self.registry.body(path)
        if data is None:
            self.answer(404, b"{}")
            return
        begin = int(self.headers.get("Range", "bytes=0-").removeprefix("bytes=").rstrip("-"))
        cut_at = self.registry.cut_at.pop(path.rpartition("/")[2], None)
        if begin and self.registry.has_ranges:
            self.answer(206, data[begin:], {"Content-Range": f"bytes {begin}-{len(data) - 1}/{len(data)}"}, cut_at)
        else:
            self.answer(200, data, cut_at=cut_at)

    def answer(
        self, status: int, body: bytes, headers: dict[str, str] | None = None, cut_at: int | None = None
    ) -> None:
        self.send_response(status)
        for key, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
            self.send_header(key, value)
        self.end_headers()
        self.wfile.write(body[:cut_at])

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def served(played: PlayedRegistry, tls: ssl.SSLContext | None = None) -> Iterator[PlayedRegistry]:
    """The registry, on a port of the loopback."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"registry": played}))
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    played.url = f"{'https' if tls else 'http'}://127.0.0.1:{server.server_port}"
    try:
        yield played
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
