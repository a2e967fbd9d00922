"""What runs on a node while images come: a seed that passes blobs on as they come, or a peer's way to it.

Stdlib only, Python 3.8: the node gets this text over SSH, with those of `CARRIED`, and runs it. Nothing is installed
there, nothing is left, and it ends with the connection: one line of configuration comes on stdin, answers go to stdout.

The configuration of a seed: {"role": "seed", "listen_port": its registry for the node's own Docker, on the loopback;
"upstream_port": the controller's registry, on the loopback; "address": where it listens for neighbours (null: for
none); "peers": their addresses; "token"; "content": containerd's content folders; "spool": folders of which the first
with room for "need_bytes" is used; "allow": digests, or digests with their sizes}. Of a peer: {"role": "peer",
"listen_port": for the node's own Docker, on the loopback; "address" and "port" of the seed; "token"}.

The first answer is {"ready": true, "port": where neighbours come in, or null} or {"error": a sentence, "kind": one of
`KINDS`}. Then {"received": bytes, "sent": bytes} whenever that has changed. {"allow": ...} and {"peers": ...} on
stdin add to what was said first.
"""

from __future__ import annotations

import errno
import http.client
import json
import os
import shutil
import socket
import socketserver
import sys
import tempfile
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reconciler.images.blob_server import Allowance, Listener, NeighbourRegistry, Registry, greeting
from reconciler.images.shelf import Shelf, Traffic
from reconciler.images.stores import ContentStore, LastingError, Spool

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

CARRIED = ("stores", "shelf", "blob_server", "relay")
"""The modules that a node gets, each behind those that it imports."""

KINDS = ("no-space", "port-taken", "no-address", "no-route", "refused", "failed")
"""No spool folder has room; `listen_port` is in use; `address` is not this node's; the seed cannot be reached; it does
not let this node in; anything else."""

LOOPBACK = "127.0.0.1"
CHUNK_BYTES = 1 << 20
COPY_BYTES = 256 << 10
SPARE_BYTES = 256 << 20  # left free beside what is spooled
UPSTREAM_S = 120.0  # longer than the controller's own patience with its source
TRIAL_S = 5.0
KEEPALIVE = {"TCP_KEEPIDLE": 10, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 3}  # a seed without power is noticed in 25 s
REPORT_S = 1.0
HEARTBEAT_S = 30.0  # a line is due then in any case: a connection that is dead is noticed when something is sent

BOOTSTRAP = (
    "import json, sys, types; read = sys.stdin.buffer; "
    "texts = json.loads(read.read(int(read.readline()))); "
    "made = [(sys.modules.setdefault(name, types.ModuleType(name)), text) for name, text in texts]; "
    "[exec(compile(text, module.__name__, 'exec'), module.__dict__) for module, text in made]; "
    "made[-1][0].main()"
)


def bootstrap() -> str:
    """The program for `python3 -I -u -c`: it reads the rest of itself, and then its configuration, from stdin."""
    return BOOTSTRAP


def start_bytes(config: Mapping[str, object]) -> bytes:
    """What to write to the stdin of `bootstrap`: the program and its configuration, a secret where it has a token."""
    package, folder = __name__.rpartition(".")[0], Path(__file__).parent
    texts = json.dumps([(f"{package}.{name}", (folder / f"{name}.py").read_text("utf-8")) for name in CARRIED])
    return f"{len(texts)}\n{texts}".encode("ascii") + line(config)


def line(document: Mapping[str, object]) -> bytes:
    """A document as the line that stdin wants."""
    return json.dumps(document).encode("ascii") + b"\n"


class TroubleError(Exception):
    """The relay cannot start: one of `KINDS`, and a sentence."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class Seed:
    """Serves blobs to the node's own Docker and to neighbours; what it lacks it gets from the controller, once."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        """Raises `TroubleError` and `OSError`."""
        self._allow = sized(config["allow"])
        self._peers = set(config.get("peers", ()))
        spool = Spool(roomy(config["spool"], config["need_bytes"]))
        upstream = Upstream(config["upstream_port"])
        shelf = Shelf((ContentStore(config.get("content", ())), spool), upstream.fetch, self._allow.get)
        self.traffic = shelf.traffic
        self._own = Registry(LOOPBACK, config["listen_port"], shelf, self._allow.__contains__, Allowance(None))
        self._listeners = [self._own]
        if config.get("address"):
            hello = greeting(config["token"])
            guarded = NeighbourRegistry(config["address"], shelf, self._allow.__contains__, self._peers, hello)
            self._listeners.append(guarded)
        self.port = self._listeners[-1].port if config.get("address") else None
        for listener in self._listeners:
            listener.start()

    def update(self, more: Mapping[str, Any]) -> None:
        """Serve more blobs, or more peers."""
        self._allow.update(sized(more.get("allow", ())))
        self._peers.update(more.get("peers", ()))

    def close(self) -> None:
        """Stop listening, cut connections."""
        for listener in self._listeners:
            listener.close()


class Upstream:
    """The controller's registry, through the SSH forward on this node's loopback."""

    def __init__(self, port: int) -> None:
        self._port = port

    @contextmanager
    def fetch(self, digest: str, offset: int) -> Iterator[tuple[int | None, Iterator[bytes]]]:
        """See `shelf.Fetch`."""
        connection = http.client.HTTPConnection(LOOPBACK, self._port, timeout=UPSTREAM_S)
        try:
            connection.request("GET", f"/v2/fleet/blobs/{digest}", headers={"Range": f"bytes={offset}-"})
            reply = connection.getresponse()
            if reply.status != 206:
                reason = (
                    f"the controller answers {reply.status} for {digest}: {reply.read(500).decode('utf-8', 'replace')}"
                )
                raise LastingError(reason) if reply.status in {403, 404} else ConnectionError(reason)
            yield offset + int(reply.headers["Content-Length"]), iter(lambda: reply.read(CHUNK_BYTES), b"")
        finally:
            connection.close()


class Peer(Listener):
    """Carries the connections of the node's own Docker to the seed."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        """Raises `TroubleError` when the seed does not answer, and `OSError`."""
        self._seed = (config["address"], config["port"])
        self._greeting = greeting(config["token"])
        self._trial()
        super().__init__(LOOPBACK, config["listen_port"], Carrier)
        self.traffic = Traffic()
        self.start()

    def connect(self) -> socket.socket:
        """A greeted connection to the seed."""
        connection = socket.create_connection(self._seed, TRIAL_S)
        connection.settimeout(None)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in KEEPALIVE.items():
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
        connection.sendall(self._greeting)
        return connection

    def update(self, more: Mapping[str, Any]) -> None:
        """A peer needs to know no more."""

    def _trial(self) -> None:
        host, port = self._seed
        try:
            connection = self.connect()
        except OSError as error:
            raise TroubleError("no-route", f"{host}:{port} cannot be reached: {error}") from error
        with connection, suppress(OSError):
            connection.settimeout(TRIAL_S)
            connection.sendall(b"GET /v2/ HTTP/1.1\r\nConnection: close\r\n\r\n")
            if connection.recv(5) == b"HTTP/":
                return
        raise TroubleError("refused", f"{host}:{port} does not let this node in")


class Carrier(socketserver.BaseRequestHandler):
    """One connection of Docker, and its other half to the seed."""

    server: Peer

    def handle(self) -> None:
        """Copy both ways until one side ends."""
        with suppress(OSError), self.server.connect() as seed:
            back = threading.Thread(target=self._copy, args=(self.request, seed, "sent"), daemon=True)
            back.start()
            self._copy(seed, self.request, "received")
            back.join()

    def _copy(self, source: socket.socket, target: socket.socket, count: str) -> None:
        buffer = memoryview(bytearray(COPY_BYTES))
        with suppress(OSError):
            while True:
                size = source.recv_into(buffer)
                if not size:
                    break
                target.sendall(buffer[:size])
                self.server.traffic.add(**{count: size})
        for end in (source, target):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


def sized(digests: Iterable[str] | Mapping[str, int | None]) -> dict[str, int | None]:
    """Digests with their sizes, None where it is not said."""
    return dict(digests) if isinstance(digests, dict) else dict.fromkeys(digests)


def roomy(folders: Iterable[str], need_bytes: int) -> str:
    """The first of the folders that can be written and has room. Raises `TroubleError`."""
    for folder in folders:
        with suppress(OSError), tempfile.TemporaryFile(dir=folder):
            if shutil.disk_usage(folder).free >= need_bytes + SPARE_BYTES:
                return folder
    asked = ", ".join(folders)
    raise TroubleError("no-space", f"no room for {need_bytes} bytes in any of {asked}")


def started(config: Mapping[str, Any]) -> Seed | Peer:
    """The seed or peer of a configuration, at work. Raises `TroubleError`."""
    kinds = {errno.EADDRINUSE: "port-taken", errno.EADDRNOTAVAIL: "no-address", errno.ENOSPC: "no-space"}
    try:
        return Seed(config) if config["role"] == "seed" else Peer(config)
    except OSError as error:
        raise TroubleError(kinds.get(error.errno or 0, "failed"), str(error)) from error


def say(document: Mapping[str, object]) -> None:
    """One line to whoever started this."""
    sys.stdout.buffer.write(line(document))
    sys.stdout.buffer.flush()


def report(traffic: Traffic) -> None:
    """Say what has come and gone whenever it has changed. Nobody there to hear it is the end of all this."""
    said, at = (0, 0), time.monotonic()
    while True:
        time.sleep(REPORT_S)
        now = (traffic.received, traffic.sent)
        if now != said or time.monotonic() > at + HEARTBEAT_S:
            said, at = now, time.monotonic()
            try:
                say({"received": now[0], "sent": now[1]})
            except OSError:
                os._exit(1)


def main() -> None:
    """Do what the first line of stdin says, until stdin ends."""
    first = sys.stdin.buffer.readline()
    if not first:
        return
    try:
        work = started(json.loads(first))
    except TroubleError as error:
        say({"error": str(error), "kind": error.kind})
        return
    say({"ready": True, "port": work.port})
    threading.Thread(target=report, args=(work.traffic,), daemon=True).start()
    for more in sys.stdin.buffer:
        work.update(json.loads(more))
    work.close()
    os._exit(0)
