"""A read-only registry: blobs and manifests by digest, over HTTP/1.1, whole ones and those that are still coming.

Stdlib only, Python 3.8: this text is also run on nodes (`relay.py`).
"""

from __future__ import annotations

import hmac
import json
import os
import re
import socket
import socketserver
import threading
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Any

from reconciler.images.shelf import Blob, FetchError, Shelf
from reconciler.images.stores import LastingError, comes_of

if TYPE_CHECKING:
    from collections.abc import Callable

CHUNK_BYTES = 1 << 20
DOCUMENT_BYTES = 8 << 20  # no manifest is longer
FIRST_BYTE_S = 10.0  # Docker waits 30 s for a status line
GREETING_S = 5.0
LOOK_S = 0.02  # how long a listener may take to see that it has to end
TLS_HANDSHAKE = b"\x16"
NOT_TLS = b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
PATH = re.compile(r"/v2/.+/(manifests|blobs)/(sha256:[0-9a-f]{64})")
RANGE = re.compile(r"bytes=(\d+)-(\d*)")
NO_USE = 403
"""For what cannot be had: the classic store asks again for a minute after a 404, and never after "denied"."""

CODES = {403: "DENIED", 405: "UNSUPPORTED", 416: "RANGE_INVALID", 503: "UNAVAILABLE"}


class Allowance:
    """At most `rate` bytes a second for all who take from it together (None: any number)."""

    def __init__(
        self,
        rate: int | None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.rate, self.clock, self.sleep = rate, clock, sleep
        self._free_at = 0.0
        self._lock = threading.Lock()

    def take(self, wanted: int) -> int:
        """Wait for a turn; how many of the `wanted` bytes may be sent now."""
        if self.rate is None:
            return min(wanted, CHUNK_BYTES)
        count = min(wanted, CHUNK_BYTES, max(1, self.rate // 8))
        with self._lock:
            now = self.clock()
            turn = max(self._free_at, now)
            self._free_at = turn + count / self.rate
        self.sleep(turn - now)
        return count


class Listener(socketserver.ThreadingMixIn, socketserver.TCPServer):
    """A listening socket, TCP or at the path `host`; a thread a connection. Raises `OSError` when it cannot be."""

    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, host: str, port: int, handler: type[socketserver.BaseRequestHandler]) -> None:
        self._connections: set[socket.socket] = set()
        if host.startswith("/"):
            self.address_family = socket.AF_UNIX
            super().__init__(host, handler)  # type: ignore[arg-type]  # typed for TCP alone
        else:
            self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
            super().__init__((host, port), handler)

    @property
    def port(self) -> int:
        """Where it listens by TCP; 0 on a Unix socket."""
        return 0 if self.address_family == socket.AF_UNIX else int(self.server_address[1])

    def start(self) -> None:
        """Accept connections from now on."""
        threading.Thread(target=self.serve_forever, args=(LOOK_S,), daemon=True, name="fleet-listener").start()

    def close(self) -> None:
        """Accept no more, and cut those that are open. Only after `start`."""
        self.shutdown()
        self.server_close()
        for connection in tuple(self._connections):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Remember the connection, so that it can be cut."""
        self._connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """Its end."""
        self._connections.discard(request)
        super().shutdown_request(request)


class Handler(BaseHTTPRequestHandler):
    """One connection to a `Registry`."""

    server: Registry
    protocol_version = default_request_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    timeout = 300.0  # of an idle connection, and of one that takes nothing

    def handle(self) -> None:
        """Requests until one side has had enough. A TLS hello is answered in HTTP: Docker then tries without TLS."""
        with suppress(OSError):
            if self.connection.recv(1, socket.MSG_PEEK) == TLS_HANDSHAKE:
                self.connection.recv(CHUNK_BYTES)
                self.connection.sendall(NOT_TLS)
            else:
                super().handle()

    def do_GET(self) -> None:
        """Answer GET, and HEAD."""
        path = self.path.partition("?")[0]  # a mirror is asked with ?ns=
        found = PATH.fullmatch(path)
        if path in {"/v2", "/v2/"}:
            self._answer(200, "application/json", b"{}")
        elif found is None or not self.server.allowed(found[2]):
            self._refuse(404, f"{path} is not served here")
        else:
            try:
                (self._manifest if found[1] == "manifests" else self._blob)(found[2])
            except FetchError as failed:
                self._refuse(NO_USE if comes_of(failed, LastingError) else 503, str(failed))

    do_HEAD = do_GET  # noqa: N815  (the base class asks for these names)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """What the base class refuses: bad requests, and methods that are not GET or HEAD (its 501)."""
        self.close_connection = True  # a body that may follow is not read
        self._refuse(405 if code == 501 else code, message or explain or "")

    def log_message(self, format: str, *args: object) -> None:
        """Nobody reads such a log."""

    def _refuse(self, status: int, message: str) -> None:
        unknown = "MANIFEST_UNKNOWN" if "/manifests/" in getattr(self, "path", "") else "BLOB_UNKNOWN"
        error = {"code": CODES.get(status, unknown if status == 404 else "UNSUPPORTED"), "message": message}
        self._answer(status, "application/json", json.dumps({"errors": [error]}).encode())

    def _answer(self, status: int, kind: str, body: bytes, digest: str = "") -> None:
        self._headers(status, kind, len(body), {"Docker-Content-Digest": digest} if digest else {})
        if self.command != "HEAD":
            self.wfile.write(body)

    def _headers(self, status: int, kind: str, length: int, more: dict[str, str]) -> None:
        self.send_response(status)
        self.send_header("Docker-Distribution-Api-Version", "registry/2.0")
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(length))
        for name, value in more.items():
            self.send_header(name, value)
        if status == 405:
            self.send_header("Allow", "GET, HEAD")
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()

    def _manifest(self, digest: str) -> None:
        with self.server.shelf.blob(digest) as blob:
            blob.until(lambda: False)
            if blob.file is None or not blob.size or blob.size > DOCUMENT_BYTES:
                self._refuse(404, f"{digest} is not a manifest")
                return
            body = os.pread(blob.file.fileno(), blob.size, 0)
        self._answer(200, media_type(body), body, digest)

    def _blob(self, digest: str) -> None:
        size = self.server.shelf.size(digest) if self.command == "HEAD" else None
        if size is not None:
            self._blob_headers(digest, 0, size, size)
            return
        with self.server.shelf.blob(digest) as blob:
            blob.until(lambda: blob.size is not None)
            size = blob.size or 0
            start, end = self._span(size) or (0, size)
            if start >= end and self._span(size):
                self._headers(416, "application/json", 0, {"Content-Range": f"bytes */{size}"})
                return
            blob.until(lambda: blob.ready > start, FIRST_BYTE_S)  # a blob that cannot be had gets a status of its own
            self._blob_headers(digest, start, end, size)
            if self.command != "HEAD":
                self._send(blob, start, end)

    def _span(self, size: int) -> tuple[int, int] | None:
        """From where to where, if a part is asked for."""
        found = RANGE.fullmatch(self.headers.get("Range", "")) if self.command != "HEAD" else None
        if found is None:
            return None
        return int(found[1]), min(int(found[2]) + 1, size) if found[2] else size

    def _blob_headers(self, digest: str, start: int, end: int, size: int) -> None:
        headers = {"Docker-Content-Digest": digest, "Accept-Ranges": "bytes"}
        part = self._span(size) is not None
        if part:
            headers["Content-Range"] = f"bytes {start}-{end - 1}/{size}"
        self._headers(206 if part else 200, "application/octet-stream", end - start, headers)

    def _send(self, blob: Blob, start: int, end: int) -> None:
        """The bytes as they come. When no more come, the connection is cut: the receiver sees that it lacks some."""
        server = self.server
        try:
            while start < end:
                blob.until(lambda at=start: blob.ready > at)  # type: ignore[misc]
                count = server.allowance.take(min(blob.ready, end) - start)
                sent = self.connection.sendfile(blob.file, start, count) if blob.file else 0
                if not sent:  # the file is shorter than it was
                    break
                server.shelf.traffic.add(sent=sent)
                start += sent
        except FetchError:
            pass
        self.close_connection |= start < end


class Registry(Listener):
    """Serves those blobs of a shelf that are allowed."""

    def __init__(
        self,
        host: str,
        port: int,
        shelf: Shelf,
        allowed: Callable[[str], bool],
        allowance: Allowance,
        handler: type[Handler] = Handler,
    ) -> None:
        self.shelf, self.allowed, self.allowance = shelf, allowed, allowance
        super().__init__(host, port, handler)


class NeighbourHandler(Handler):
    """One connection of a neighbour, which has to greet first."""

    server: NeighbourRegistry

    def handle(self) -> None:
        """Go on only behind the right greeting, and that in time."""
        with suppress(OSError):
            if hmac.compare_digest(self._greeting(len(self.server.greeting)), self.server.greeting):
                self.connection.settimeout(self.timeout)
                super().handle()

    def _greeting(self, length: int) -> bytes:
        line, deadline = b"", time.monotonic() + GREETING_S
        while len(line) < length and not line.endswith(b"\n"):
            self.connection.settimeout(max(deadline - time.monotonic(), 0.001))
            byte = self.connection.recv(1)
            if not byte:
                break
            line += byte
        return line


class NeighbourRegistry(Registry):
    """The same for neighbours: only from `peers`, and only behind the line of `greeting`."""

    def __init__(
        self, host: str, shelf: Shelf, allowed: Callable[[str], bool], peers: set[str], greeting: bytes
    ) -> None:
        self.peers, self.greeting = peers, greeting
        super().__init__(host, 0, shelf, allowed, Allowance(None), NeighbourHandler)

    def verify_request(self, request: Any, client_address: Any) -> bool:
        """Whether it comes from a peer."""
        return client_address[0] in self.peers


def greeting(token: str) -> bytes:
    """The line that a neighbour starts with."""
    return f"FLEET {token}\n".encode()


def media_type(document: bytes) -> str:
    """What a manifest says it is, else what it looks like."""
    try:
        parsed = json.loads(document)
    except ValueError:
        parsed = None
    fields = parsed if isinstance(parsed, dict) else {}
    return str(
        fields.get("mediaType")
        or f"application/vnd.oci.image.{'index' if 'manifests' in fields else 'manifest'}.v1+json"
    )
