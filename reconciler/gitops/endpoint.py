"""The agent's HTTP endpoint: `/metrics` for Prometheus, and `/healthz`, which is 200 while the loop turns."""

import threading
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    disable_created_metrics,
    generate_latest,
)

SLOW_S = 10.0
"""Whoever sends no request for so long is let go."""


class Metrics:
    """What is counted, in a registry of its own."""

    def __init__(self) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]  # when a counter was made helps nobody
        self.registry = CollectorRegistry()
        self.looked = self._gauge("look_timestamp_seconds", "When the agent last had a whole look, since 1970.")
        self.fetched = self._gauge("fetch_timestamp_seconds", "When the branch was last fetched, since 1970.")
        self.fetch_failures = self._counter("fetch_failures", "Fetches that failed.")
        self.attempts = self._counter("attempts", "Applies of a commit, by how they ended.", "outcome")
        self.heals = self._counter("heals", "Repairs, by how they ended.", "ok")
        self.errors = self._counter("errors", "Looks that ended with an error.")
        self.blocked = self._gauge("blocked", "1 while somebody has to do something before the branch is applied.")
        self.waiting = self._gauge("waiting", "1 while the newest commit waits.")
        self.applying = self._gauge("applying", "1 while the fleet is being changed.")
        self.drifted = self._gauge("drifted", "Placements that drifted and are left so.")
        self.given_up = self._gauge("given_up", "Placements that are not repaired any more.")
        self.suspended = self._gauge("suspended", "1 while a person has suspended the agent.")
        self.commit = self._gauge(
            "commit_info", "The newest, the last applied and the last good commit.", "role", "commit"
        )

    def text(self) -> bytes:
        """All of it, in the text format."""
        return bytes(generate_latest(self.registry))

    def _gauge(self, name: str, about: str, *labels: str) -> Gauge:
        return Gauge(f"fleet_gitops_{name}", about, labels, registry=self.registry)

    def _counter(self, name: str, about: str, *labels: str) -> Counter:
        return Counter(f"fleet_gitops_{name}", about, labels, registry=self.registry)


class Endpoint:
    """The server, on threads of its own: it answers also while the loop is busy. `is_alive`: asked for `/healthz`."""

    def __init__(self, host: str, port: int, metrics: Metrics, is_alive: Callable[[], bool]) -> None:
        """Listen. Raises `OSError` when the address is taken or is none of this machine."""
        handler = type("Handler", (_Handler,), {"metrics": metrics, "is_alive": staticmethod(is_alive)})
        self._server = _Server((host, port), handler)
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, daemon=True, name="fleet-endpoint").start()

    def close(self) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    """Not shared with another process: a second agent on the same port has to hear of it."""

    allow_reuse_port = False
    request_queue_size = 16


class _Handler(BaseHTTPRequestHandler):
    metrics: Metrics
    is_alive: Callable[[], bool]
    timeout = SLOW_S
    server_version = "fleet"
    sys_version = ""

    def do_GET(self) -> None:
        """Answer."""
        path = self.path.partition("?")[0]
        if path == "/metrics":
            self._answer(HTTPStatus.OK, self.metrics.text(), CONTENT_TYPE_LATEST)
        elif path == "/healthz":
            alive = self.is_alive()
            code = HTTPStatus.OK if alive else HTTPStatus.SERVICE_UNAVAILABLE
            self._answer(code, b"ok\n" if alive else b"stuck\n")
        else:
            self._answer(HTTPStatus.NOT_FOUND, b"there are /metrics and /healthz\n")

    def _answer(self, code: HTTPStatus, body: bytes, kind: str = "text/plain; charset=utf-8") -> None:
        self.send_response(code)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Requests are nobody's news."""


def address_of(text: str) -> tuple[str, int]:
    """HOST:PORT, or PORT on the loopback. Raises `ValueError` with a sentence."""
    host, _, port = text.rpartition(":")
    try:
        number = int(port)
    except ValueError:
        number = -1
    if not 0 <= number < 65536:
        raise ValueError(f"'{text}' is no HOST:PORT")
    return host.strip("[]") or "127.0.0.1", number
