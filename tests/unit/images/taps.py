"""What the tests of serving share: blobs, a source that does as it is told, and a bare client."""

import hashlib
import http.client
import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from reconciler.images.errors import SupplyError, SupplyErrorKind

STEP = 64 << 10

Turn = Callable[[bytes, int], Iterator[bytes]]
"""What comes of a blob from an offset on, at one call."""


def noise(size: int, seed: int = 1) -> bytes:
    return random.Random(seed).randbytes(size)


def digest_of(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def steps(data: bytes, offset: int) -> Iterator[bytes]:
    """All of it."""
    for start in range(offset, len(data), STEP):
        yield data[start : start + STEP]


def broken_at(end: int) -> Turn:
    def turn(data: bytes, offset: int) -> Iterator[bytes]:
        yield from steps(data[:end], offset)
        raise SupplyError(SupplyErrorKind.NO_ANSWER, "the line is dead")

    return turn


def flipped(data: bytes, offset: int) -> Iterator[bytes]:
    """The right length, the wrong bytes."""
    return steps(bytes([data[0] ^ 1]) + data[1:], offset)


def failing(kind: SupplyErrorKind) -> Turn:
    def turn(data: bytes, offset: int) -> Iterator[bytes]:
        raise SupplyError(kind, f"it says {kind}")

    return turn


@dataclass
class Tap:
    """A source of blobs: each call takes the next of its turns, at last all bytes."""

    blobs: dict[str, bytes]
    turns: list[Turn] = field(default_factory=list)
    calls: list[int] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def fetch(self, digest: str, offset: int) -> Iterator[Iterator[bytes]]:
        with self.lock:
            self.calls.append(offset)
            turn = self.turns.pop(0) if self.turns else steps
        yield turn(self.blobs[digest], offset)


@dataclass(frozen=True)
class Reply:
    status: int
    headers: http.client.HTTPMessage
    body: bytes


def ask(port: int, path: str, method: str = "GET", **headers: str) -> Reply:
    """One request on a connection of its own. Raises `IncompleteRead` when the body is cut."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request(method, path, headers=headers)
        reply = connection.getresponse()
        return Reply(reply.status, reply.headers, reply.read())
    finally:
        connection.close()


def blob(port: int, digest: str, **headers: str) -> Reply:
    return ask(port, f"/v2/ghcr.io/org/image/blobs/{digest}", **headers)
