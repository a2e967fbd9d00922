"""The registry on the loopback: what it answers, and blobs that are served while they come."""

import errno
import http.client
import json
import os
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest

from reconciler.images import blob_server, shelf
from reconciler.images.blob_server import CHUNK_BYTES, Allowance
from reconciler.images.errors import SupplyErrorKind
from reconciler.images.serving import SocketRegistry, behind
from reconciler.images.vault import Vault
from tests.unit.images.taps import STEP, Tap, ask, blob, broken_at, digest_of, failing, flipped, noise, steps

DATA = noise(10 * STEP + 7)
DIGEST = digest_of(DATA)


@pytest.fixture(autouse=True)
def _no_long_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shelf, "FIRST_PAUSE_S", 0.01)


@pytest.fixture
def vault(tmp_path: Path) -> Vault:
    return Vault(tmp_path / "vault")


@pytest.fixture
def tap() -> Tap:
    return Tap({DIGEST: DATA})


@pytest.fixture
def registry(vault: Vault, tap: Tap) -> Iterator[SocketRegistry]:
    with closing(SocketRegistry(vault, tap.fetch)) as registry:
        yield registry


@pytest.fixture
def port(registry: SocketRegistry) -> Iterator[int]:
    with registry.offering({DIGEST: len(DATA)}):
        yield registry.start()


def soon(holds: Callable[[], bool]) -> bool:
    """Whether it comes to hold; the blob's last step, onto the disk, is behind its last reader."""
    deadline = time.monotonic() + 20
    while not holds() and time.monotonic() < deadline:
        time.sleep(0.01)
    return holds()


# what comes, comes once


def test_a_missing_blob_comes_from_the_source_once_and_stays(
    registry: SocketRegistry, port: int, tap: Tap, vault: Vault
) -> None:
    assert DATA == blob(port, DIGEST).body
    assert soon(lambda: vault.has(DIGEST))
    assert DATA == blob(port, DIGEST).body
    assert [0] == tap.calls
    assert soon(lambda: 2 * len(DATA) == registry.sent_bytes), "counted when it is sent, which the reader may see first"
    assert len(DATA) == registry.received_bytes


def test_many_readers_share_one_fetch_and_read_while_it_goes_on(port: int, tap: Tap) -> None:
    """The source gives its second half only when every reader has the first."""
    readers, half = 6, 5 * STEP
    have_first_half = threading.Barrier(readers + 1, timeout=20)

    def turn(data: bytes, offset: int) -> Iterator[bytes]:
        yield from steps(data[:half], offset)
        have_first_half.wait()
        yield from steps(data, half)

    def read(_: int) -> bytes:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        with closing(connection):
            connection.request("GET", f"/v2/x/blobs/{DIGEST}")
            reply = connection.getresponse()
            first = reply.read(half - 1)
            have_first_half.wait()
            return first + reply.read()

    tap.turns.append(turn)
    with ThreadPoolExecutor(readers) as pool:
        assert [DATA] * readers == list(pool.map(read, range(readers)))
    assert [0] == tap.calls


def test_a_fetch_that_breaks_off_goes_on_where_it_was(registry: SocketRegistry, port: int, tap: Tap) -> None:
    tap.turns += [broken_at(3 * STEP), failing(SupplyErrorKind.NO_ANSWER), broken_at(4 * STEP + 1)]
    assert DATA == blob(port, DIGEST).body
    assert [0, 3 * STEP, 3 * STEP, 4 * STEP + 1] == tap.calls
    assert soon(lambda: registry.last_error(DIGEST) is None)


def test_a_stream_that_just_ends_too_early_goes_on_as_well(port: int, tap: Tap) -> None:
    tap.turns.append(lambda data, offset: steps(data[:STEP], offset))
    assert DATA == blob(port, DIGEST).body
    assert [0, STEP] == tap.calls


def test_a_source_that_cannot_start_in_the_middle_is_read_from_the_start(vault: Vault) -> None:
    calls: list[int] = []

    @contextmanager
    def strict(digest: str, offset: int) -> Iterator[Iterator[bytes]]:
        if offset:
            calls.append(offset)
            next(failing(SupplyErrorKind.REFUSED)(DATA, 0))
        calls.append(0)
        yield steps(DATA[: 2 * STEP] if len(calls) == 1 else DATA, 0)

    with closing(SocketRegistry(vault, strict)) as registry, registry.offering({DIGEST: len(DATA)}):
        assert DATA == blob(registry.start(), DIGEST).body
    assert [0, 2 * STEP, 0] == calls


def test_behind_an_offset_nothing_is_lost_and_nothing_comes_twice() -> None:
    for offset in range(8):
        assert b"abcdefg"[offset:] == b"".join(behind(offset, iter([b"abc", b"", b"de", b"fg"])))


def test_a_source_that_is_silent_for_too_long_ends_it_with_the_reason(
    registry: SocketRegistry, port: int, tap: Tap
) -> None:
    registry._shelf.patience_s = 0.05
    tap.turns += [failing(SupplyErrorKind.NO_ANSWER)] * 50
    assert 403 == blob(port, DIGEST).status, "Docker asks no more: who waited once in vain waits no second time"
    error = registry.last_error(DIGEST)
    assert error is not None
    assert (SupplyErrorKind.NO_ANSWER, "it says no-answer") == (error.kind, error.message)


@pytest.mark.parametrize("kind", [SupplyErrorKind.NOT_FOUND, SupplyErrorKind.DENIED])
def test_what_cannot_be_had_is_not_tried_again(
    registry: SocketRegistry, port: int, tap: Tap, kind: SupplyErrorKind
) -> None:
    tap.turns.append(failing(kind))
    reply = blob(port, DIGEST)
    assert (403, "DENIED") == (reply.status, json.loads(reply.body)["errors"][0]["code"])
    assert [0] == tap.calls
    error = registry.last_error(DIGEST)
    assert error is not None
    assert kind == error.kind


def test_a_blob_that_nobody_is_offered_any_more_comes_no_further(
    registry: SocketRegistry, vault: Vault, tap: Tap
) -> None:
    begun, on = threading.Event(), threading.Event()

    def turn(data: bytes, offset: int) -> Iterator[bytes]:
        for chunk in steps(data, offset):
            yield chunk
            begun.set()
            on.wait(20)

    tap.turns.append(turn)
    with ThreadPoolExecutor(1) as pool:
        with registry.offering({DIGEST: len(DATA)}):
            reader = pool.submit(blob, registry.start(), DIGEST)
            assert begun.wait(20)
        on.set()
        with suppress(http.client.IncompleteRead):  # it had begun to read
            assert 403 == reader.result().status
    assert soon(lambda: not registry._shelf._growing)
    assert [(DIGEST, STEP)] == [(digest, size) for digest, size, _ in vault.parts()]
    assert registry.last_error(DIGEST) is None


def test_a_full_disk_is_told(
    registry: SocketRegistry, port: int, monkeypatch: pytest.MonkeyPatch, vault: Vault
) -> None:
    def full(handle: int, data: bytes, offset: int) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "pwrite", full)
    assert 403 == blob(port, DIGEST).status
    error = registry.last_error(DIGEST)
    assert error is not None
    assert SupplyErrorKind.NO_SPACE == error.kind


# what is wrong is never whole


@pytest.mark.parametrize("size", [len(DATA), None])
def test_a_source_that_lies_never_yields_a_whole_blob(
    registry: SocketRegistry, vault: Vault, tap: Tap, size: int | None
) -> None:
    tap.turns.append(flipped)
    with registry.offering({DIGEST: size}):
        port = registry.start()
        if size is None:
            assert 403 == blob(port, DIGEST).status
        else:
            with pytest.raises(http.client.IncompleteRead) as cut:
                blob(port, DIGEST)
            assert len(DATA) > len(cut.value.partial)
        error = registry.last_error(DIGEST)
        assert error is not None
        assert SupplyErrorKind.DAMAGED == error.kind
        assert [] == [*vault.digests(), *vault.parts()]
        assert DATA == blob(port, DIGEST).body
        assert [0, 0] == tap.calls
        assert soon(lambda: registry.last_error(DIGEST) is None)


def test_who_lies_twice_is_not_asked_again(registry: SocketRegistry, port: int, tap: Tap) -> None:
    """Docker's classic store would have it fetched six times."""
    tap.turns += [flipped, flipped]
    for _ in range(2):
        with suppress(http.client.IncompleteRead):  # or an error at once, where nothing was sent yet
            assert 403 == blob(port, DIGEST).status
        assert soon(lambda: not registry._shelf._growing)
    assert 403 == blob(port, DIGEST).status
    assert [0, 0] == tap.calls


def test_more_than_there_can_be_is_a_lie(registry: SocketRegistry, vault: Vault, tap: Tap) -> None:
    with registry.offering({DIGEST: STEP}), pytest.raises(http.client.IncompleteRead):
        blob(registry.start(), DIGEST)
    error = registry.last_error(DIGEST)
    assert error is not None
    assert SupplyErrorKind.DAMAGED == error.kind
    assert not vault.has(DIGEST)


def test_a_blob_of_the_vault_that_was_cut_short_is_fetched_anew(port: int, vault: Vault, tap: Tap) -> None:
    vault.put(DATA)
    with vault.path(DIGEST).open("r+b") as file:
        file.truncate(STEP)
    assert DATA == blob(port, DIGEST).body
    assert [0] == tap.calls


# the protocol


def test_a_range_is_a_part_and_one_behind_the_end_is_none(port: int) -> None:
    size = len(DATA)
    part = blob(port, DIGEST, Range=f"bytes={STEP}-")
    assert (206, DATA[STEP:]) == (part.status, part.body)
    assert f"bytes {STEP}-{size - 1}/{size}" == part.headers["Content-Range"]
    middle = blob(port, DIGEST, Range="bytes=5-9")
    assert (206, DATA[5:10], f"bytes 5-9/{size}") == (middle.status, middle.body, middle.headers["Content-Range"])
    none = blob(port, DIGEST, Range=f"bytes={size}-")
    assert (416, f"bytes */{size}", b"") == (none.status, none.headers["Content-Range"], none.body)
    assert (200, DATA) == ((odd := blob(port, DIGEST, Range="lines=1-")).status, odd.body)


def test_head_of_a_blob_of_known_size_fetches_nothing(port: int, tap: Tap) -> None:
    reply = ask(port, f"/v2/x/blobs/{DIGEST}", "HEAD")
    assert (200, str(len(DATA)), b"") == (reply.status, reply.headers["Content-Length"], reply.body)
    assert DIGEST == reply.headers["Docker-Content-Digest"]
    assert [] == tap.calls


def test_head_of_a_blob_of_unknown_size_fetches_it(registry: SocketRegistry, tap: Tap) -> None:
    with registry.offering({DIGEST: None}):
        reply = ask(registry.start(), f"/v2/x/blobs/{DIGEST}", "HEAD")
    assert (200, str(len(DATA))) == (reply.status, reply.headers["Content-Length"])
    assert [0] == tap.calls


def test_a_tls_hello_is_answered_in_http(port: int) -> None:
    """Docker's containerd store goes on without TLS only then."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    hello = ssl.create_default_context().wrap_bio(incoming, outgoing, server_hostname="localhost")
    with pytest.raises(ssl.SSLWantReadError):
        hello.do_handshake()
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        connection.sendall(outgoing.read())
        assert b"HTTP/" == connection.recv(5)


def test_only_what_is_offered_is_served_and_offers_may_overlap(registry: SocketRegistry, vault: Vault) -> None:
    vault.put(DATA)
    port = registry.start()
    assert 404 == blob(port, DIGEST).status
    with registry.offering({DIGEST: None}):
        with registry.offering({DIGEST: len(DATA)}):
            assert 200 == blob(port, DIGEST).status
        assert 200 == blob(port, DIGEST).status
        assert 404 == blob(port, digest_of(b"other")).status
    assert 404 == blob(port, DIGEST).status


def test_manifests_come_with_their_type(registry: SocketRegistry, vault: Vault) -> None:
    docker = "application/vnd.docker.distribution.manifest.v2+json"
    documents = {
        docker: json.dumps({"mediaType": docker}).encode(),
        "application/vnd.oci.image.manifest.v1+json": b'{"schemaVersion":2,"layers":[]}',
        "application/vnd.oci.image.index.v1+json": b'{"schemaVersion":2,"manifests":[]}',
    }
    with registry.offering({vault.put(document): None for document in documents.values()}):
        for kind, document in documents.items():
            path = f"/v2/org/image/manifests/{digest_of(document)}?ns=ghcr.io"
            reply = ask(registry.start(), path)
            assert (200, document, kind) == (reply.status, reply.body, reply.headers["Content-Type"])
            head = ask(registry.start(), path, "HEAD")
            assert (b"", str(len(document))) == (head.body, head.headers["Content-Length"])
            assert digest_of(document) == head.headers["Docker-Content-Digest"]
    assert 0 == registry.sent_bytes


@pytest.mark.parametrize("path", ["/v2/x/manifests/latest", "/v2/x/tags/list", "/", "/v2/x/blobs/sha256:../../etc"])
def test_anything_else_is_not_here(port: int, path: str) -> None:
    reply = ask(port, path)
    assert 404 == reply.status
    assert json.loads(reply.body)["errors"][0]["message"]


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_nothing_can_be_written(port: int, method: str) -> None:
    reply = ask(port, f"/v2/x/blobs/{DIGEST}", method)
    assert (405, "GET, HEAD") == (reply.status, reply.headers["Allow"])
    assert "UNSUPPORTED" == json.loads(reply.body)["errors"][0]["code"]


def test_a_connection_serves_many_requests(port: int) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    with closing(connection):
        for path, status in (("/v2/", 200), ("/v2/x/blobs/none", 404), (f"/v2/x/blobs/{DIGEST}", 200), ("/v2/", 200)):
            connection.request("GET", path)
            own = connection.sock
            reply = connection.getresponse()
            reply.read()
            assert (status, own) == (reply.status, connection.sock)


def test_on_a_unix_socket_it_serves_the_same_and_leaves_no_file(vault: Vault, tap: Tap, tmp_path: Path) -> None:
    at = tmp_path / "registry"
    with closing(SocketRegistry(vault, tap.fetch, at=at)) as registry, registry.offering({DIGEST: len(DATA)}):
        assert 0 == registry.start() == registry.start()
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(20)
            connection.connect(str(at))
            connection.sendall(f"GET /v2/x/blobs/{DIGEST} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
            reply = http.client.HTTPResponse(connection)
            reply.begin()
            assert (200, DATA) == (reply.status, reply.read())
    assert not at.exists()


def test_starting_again_is_the_same_port_and_closing_cuts(registry: SocketRegistry) -> None:
    port = registry.start()
    assert port == registry.start()
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        connection.sendall(b"GET /v2/ HTTP/1.1\r\n\r\n")
        reply = b""
        while not reply.endswith(b"{}"):
            reply += connection.recv(CHUNK_BYTES)
        registry.close()
        assert b"" == connection.recv(1)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=20)


# bounds


def test_all_together_send_no_more_than_allowed() -> None:
    """Of any time, in a clock of its own, no more than rate x time and one chunk; nor much less, when all is taken."""
    rate, now, sent = 1_000_000, 0.0, 0

    def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds

    allowance = Allowance(rate, clock=lambda: now, sleep=sleep)
    for wanted in (10, CHUNK_BYTES, 7_000_000, 1, 300_000) * 20:
        count = allowance.take(wanted)
        assert 0 < count <= min(wanted, CHUNK_BYTES)
        assert sent <= rate * now + 1
        sent += count
    assert sent >= rate * now - 1
    now += 1000
    before = now
    taken = sum(allowance.take(rate) for _ in range(80))
    assert taken <= rate * (now - before) + rate // 8, "what was not sent in an idle time is not made up for"


def test_the_registry_asks_for_its_turn(vault: Vault, tap: Tap, monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[int] = []

    class Counted(Allowance):
        def take(self, wanted: int) -> int:
            taken.append(super().take(wanted))
            return taken[-1]

    monkeypatch.setattr("reconciler.images.serving.Allowance", Counted)
    with closing(SocketRegistry(vault, tap.fetch, 1 << 30)) as registry, registry.offering({DIGEST: len(DATA)}):
        assert DATA == blob(registry.start(), DIGEST).body
    assert len(DATA) == sum(taken)
    assert blob_server.CHUNK_BYTES >= max(taken)


MEMORY = """
import hashlib, http.client, resource, sys
from contextlib import contextmanager
from pathlib import Path
from reconciler.images.serving import SocketRegistry
from reconciler.images.vault import Vault

CHUNK, COUNT = bytes(1 << 20), 200
state = hashlib.sha256()
for _ in range(COUNT):
    state.update(CHUNK)
digest = f"sha256:{state.hexdigest()}"

@contextmanager
def fetch(digest, offset):
    yield (CHUNK for _ in range(COUNT))

def read(port):
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request("GET", f"/v2/x/blobs/{digest}")
    reply, size = connection.getresponse(), 0
    while chunk := reply.read(1 << 20):
        size += len(chunk)
    assert size == COUNT << 20

registry = SocketRegistry(Vault(Path(sys.argv[1])), fetch)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
with registry.offering({digest: COUNT << 20}):
    read(registry.start())
    read(registry.start())
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def test_memory_stays_flat(tmp_path: Path) -> None:
    """200 MiB through the vault, coming and whole, in less than 60 MB."""
    argv = [sys.executable, "-c", MEMORY, str(tmp_path / "vault")]
    done = subprocess.run(argv, capture_output=True, text=True, check=True, cwd=Path(__file__).parents[3])
    assert 60_000 > int(done.stdout)
