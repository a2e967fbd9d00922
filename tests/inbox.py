"""A server that news are sent to, which keeps them."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

POISON = "poison-token-4711"
"""Is in the URL, and may be nowhere else."""


class Inbox(HTTPServer):
    """Keeps what is posted to it, and answers with `status`."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Post)
        self.status = 200
        self.messages: list[dict[str, str]] = []

    @property
    def url(self) -> str:
        return f"json://user:{POISON}@127.0.0.1:{self.server_port}/{POISON}"


class _Post(BaseHTTPRequestHandler):
    server: Inbox

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.messages.append(json.loads(body))
        self.send_response(self.server.status)
        self.end_headers()

    def log_message(self, *words: object) -> None:
        """Quiet."""


@contextmanager
def opened() -> Iterator[Inbox]:
    """It listens while the block lasts."""
    server = Inbox()
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
