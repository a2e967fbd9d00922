"""The program that nodes run: real processes and real sockets, all on one machine."""

import ast
import http.client
import json
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from reconciler.images import blob_server, relay
from reconciler.images.blob_server import NeighbourRegistry, greeting
from reconciler.images.serving import SocketRegistry
from reconciler.images.shelf import Shelf
from reconciler.images.stores import ContentStore, DamagedError, Spool
from reconciler.images.vault import Vault
from tests.unit.images.taps import Tap, blob, broken_at, digest_of, flipped, noise

HERE = "127.0.0.1"
TOKEN = "b7" * 32
DATA = noise(3_000_001)
DIGEST = digest_of(DATA)
OTHER = noise(500_000, seed=2)
OTHER_DIGEST = digest_of(OTHER)


class Program:
    """The relay as a node runs it: its text and configuration come on stdin."""

    def __init__(self, **config: object) -> None:
        argv = [sys.executable, "-I", "-u", "-c", relay.bootstrap()]
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.tell(relay.start_bytes(config))
        self.first = self.hear()

    def tell(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def hear(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        return answer

    def hear_until(self, said: dict[str, int]) -> dict[str, Any]:
        """The line that says this; a test that waits for it in vain ends by its time limit."""
        while (heard := self.hear()) != said:
            pass
        return heard

    def end(self) -> int:
        """Close its stdin, as the end of its connection does; how it ended, which it must."""
        with self.process:
            assert self.process.stdin is not None
            self.process.stdin.close()
            return self.process.wait(timeout=20)

    def kill(self) -> None:
        with self.process:
            self.process.kill()


class Lab:
    """A controller's registry, and programs that end with the test."""

    def __init__(self, folder: Path) -> None:
        self.tap = Tap({DIGEST: DATA, OTHER_DIGEST: OTHER})
        self.spool = folder / "spool"
        self.spool.mkdir()
        self.controller = SocketRegistry(Vault(folder / "vault"), self.tap.fetch)
        self.programs: list[Program] = []

    def program(self, **config: object) -> Program:
        self.programs.append(Program(**config))
        return self.programs[-1]

    def seed(self, **config: object) -> tuple[Program, int]:
        """A seed, and where its own Docker asks it."""
        port = free_port()
        usual = {
            "role": "seed",
            "listen_port": port,
            "upstream_port": self.controller.start(),
            "address": HERE,
            "peers": [HERE],
            "token": TOKEN,
            "content": [],
            "spool": [str(self.spool)],
            "need_bytes": 0,
            "allow": {DIGEST: len(DATA)},
        }
        return self.program(**{**usual, **config}), port

    def peer(self, seed_port: int, **config: object) -> tuple[Program, int]:
        port = free_port()
        usual = {"role": "peer", "listen_port": port, "address": HERE, "port": seed_port, "token": TOKEN}
        return self.program(**{**usual, **config}), port


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    lab = Lab(tmp_path)
    with closing(lab.controller), lab.controller.offering({DIGEST: len(DATA), OTHER_DIGEST: len(OTHER)}):
        yield lab
        for program in lab.programs:
            program.kill()


def free_port() -> int:
    with socket.create_server((HERE, 0)) as server:
        return int(server.getsockname()[1])


def greeted(port: int, hello: bytes) -> bytes:
    """What a seed's door says to a greeting and a request; nothing, when it closes."""
    with socket.create_connection((HERE, port), timeout=20) as connection:
        try:
            connection.sendall(hello + b"GET /v2/ HTTP/1.1\r\n\r\n")
            return connection.recv(5)
        except ConnectionError:
            return b""


# what it carries


def test_the_text_is_for_any_python_from_3_8_on_and_needs_nothing_else() -> None:
    known = {"__future__", *sys.stdlib_module_names}
    for place, name in enumerate(relay.CARRIED):
        tree = ast.parse(Path(relay.__file__).with_name(f"{name}.py").read_text(), feature_version=(3, 8))
        own = {f"reconciler.images.{before}" for before in relay.CARRIED[:place]}
        for node in ast.walk(tree):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [str(node.module)] if isinstance(node, ast.ImportFrom) else []
            assert [] == [name for name in names if name not in own and name.partition(".")[0] not in known]


def test_nobody_sees_the_token(lab: Lab) -> None:
    program, _ = lab.seed()
    shown = b"".join(Path(f"/proc/{program.process.pid}/{what}").read_bytes() for what in ("cmdline", "environ"))
    assert b"json.loads" in shown
    assert TOKEN.encode() not in shown


# seed and peer


def test_each_byte_leaves_the_controller_once(lab: Lab) -> None:
    seed, own = lab.seed()
    peers = [lab.peer(seed.first["port"]) for _ in range(2)]
    assert [DATA] * 4 == [blob(port, DIGEST).body for port in (own, peers[0][1], peers[1][1], own)]
    assert (len(DATA), [0]) == (lab.controller.sent_bytes, lab.tap.calls)
    seed.hear_until({"received": len(DATA), "sent": 4 * len(DATA)})
    assert len(DATA) < peers[0][0].hear()["received"] < len(DATA) + 2000


def test_a_seed_goes_on_where_the_controller_broke_off(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """The controller gives up at once here, and cuts the seed's connection in the middle of the blob."""
    lab.controller._shelf.patience_s = 0
    lab.tap.turns.append(broken_at(2_000_000))
    _, own = lab.seed()
    assert DATA == blob(own, DIGEST).body
    assert [0, 2_000_000] == lab.tap.calls
    assert len(DATA) == lab.controller.sent_bytes


def test_a_seed_may_be_told_digests_without_sizes(lab: Lab) -> None:
    seed, own = lab.seed(allow=[DIGEST])
    assert DATA == blob(own, DIGEST).body
    seed.tell(relay.line({"allow": [OTHER_DIGEST]}))
    while (reply := blob(own, OTHER_DIGEST)).status != 200:
        time.sleep(0.01)
    assert OTHER == reply.body


def test_only_what_is_allowed_is_passed_on_and_more_may_be(lab: Lab) -> None:
    seed, own = lab.seed(peers=[])
    assert 404 == blob(own, OTHER_DIGEST).status
    assert b"" == greeted(seed.first["port"], greeting(TOKEN))
    seed.tell(relay.line({"allow": {OTHER_DIGEST: len(OTHER)}, "peers": [HERE]}))
    while blob(own, OTHER_DIGEST).status != 200:
        time.sleep(0.01)
    assert b"HTTP/" == greeted(seed.first["port"], greeting(TOKEN))


def test_blobs_of_the_nodes_own_store_need_no_controller(lab: Lab, tmp_path: Path) -> None:
    folder = tmp_path / "content" / "blobs" / "sha256"
    folder.mkdir(parents=True)
    (folder / DIGEST[7:]).write_bytes(DATA)
    (folder / OTHER_DIGEST[7:]).write_bytes(b"")
    sizes = {DIGEST: len(DATA), OTHER_DIGEST: len(OTHER)}
    _, own = lab.seed(allow=sizes, content=[str(tmp_path / "none"), str(tmp_path / "content")])
    assert (DATA, OTHER) == (blob(own, DIGEST).body, blob(own, OTHER_DIGEST).body)
    assert len(OTHER) == lab.controller.sent_bytes


def test_a_blob_cut_short_in_the_nodes_store_comes_from_the_controller(lab: Lab, tmp_path: Path) -> None:
    folder = tmp_path / "content" / "blobs" / "sha256"
    folder.mkdir(parents=True)
    (folder / DIGEST[7:]).write_bytes(DATA[:1000])
    _, own = lab.seed(content=[str(tmp_path / "content")])
    assert DATA == blob(own, DIGEST).body
    assert DATA[:1000] == (folder / DIGEST[7:]).read_bytes(), "the node's store is only read"


def test_a_seed_without_neighbours_has_no_door(lab: Lab) -> None:
    seed, own = lab.seed(address=None)
    assert {"ready": True, "port": None} == seed.first
    assert DATA == blob(own, DIGEST).body


# who comes in


@pytest.mark.parametrize("hello", [b"", b"FLEET wrong\n", b"FLEET \n", greeting(TOKEN)[:-1], b"FLEET " + b"a" * 500])
def test_a_wrong_greeting_gets_no_answer(lab: Lab, hello: bytes) -> None:
    seed, _ = lab.seed()
    assert b"" == greeted(seed.first["port"], hello)
    assert b"HTTP/" == greeted(seed.first["port"], greeting(TOKEN))


def test_a_right_greeting_from_elsewhere_gets_no_answer(lab: Lab) -> None:
    seed, _ = lab.seed(peers=["192.0.2.1"])
    assert b"" == greeted(seed.first["port"], greeting(TOKEN))


def test_a_greeting_has_its_time(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(blob_server, "GREETING_S", 0.1)
    nothing = Shelf((Spool(str(tmp_path)),), Tap({}).fetch, lambda _: None)  # type: ignore[arg-type]
    door = NeighbourRegistry(HERE, nothing, lambda _: True, {HERE}, greeting(TOKEN))
    door.start()
    with closing(door), socket.create_connection((HERE, door.port), timeout=20) as connection:
        connection.sendall(b"FLEET ")
        assert b"" == connection.recv(1)


def test_a_peer_with_the_wrong_token_or_address_says_so(lab: Lab) -> None:
    seed, _ = lab.seed()
    program, _ = lab.peer(seed.first["port"], token="wrong")
    assert "refused" == program.first["kind"]
    program, _ = lab.peer(free_port())
    assert "no-route" == program.first["kind"]
    assert 0 == program.end()


def test_a_peer_whose_seed_is_gone_cuts_its_connections(lab: Lab) -> None:
    seed, _ = lab.seed()
    _, port = lab.peer(seed.first["port"])
    with socket.create_connection((HERE, port), timeout=20) as connection:
        connection.sendall(b"GET /v2/ HTTP/1.1\r\n\r\n")
        assert b"HTTP/" == connection.recv(5)
        seed.kill()
        while connection.recv(4096):
            pass
    with socket.create_connection((HERE, port), timeout=20) as connection:
        assert b"" == connection.recv(1)


# beginning and end


def test_a_port_that_is_taken_is_told(lab: Lab) -> None:
    with socket.create_server((HERE, 0)) as other:
        program, _ = lab.seed(listen_port=other.getsockname()[1])
    assert "port-taken" == program.first["kind"]


def test_an_address_that_is_not_here_is_told(lab: Lab) -> None:
    assert "no-address" == lab.seed(address="192.0.2.1")[0].first["kind"]


def test_no_room_is_told_and_the_first_folder_with_room_is_used(lab: Lab, tmp_path: Path) -> None:
    folders = [str(tmp_path / "none"), str(lab.spool)]
    assert "no-space" == lab.seed(need_bytes=1 << 60, spool=folders)[0].first["kind"]
    assert "no-space" == lab.seed(spool=folders[:1])[0].first["kind"]
    assert lab.seed(spool=folders)[0].first["ready"]


@pytest.mark.parametrize("end", ["stdin", "kill"])
def test_nothing_is_left_however_it_ends(lab: Lab, end: str) -> None:
    program, own = lab.seed()
    peer, port = lab.peer(program.first["port"])
    assert DATA == blob(port, DIGEST).body
    with socket.create_connection((HERE, own), timeout=20):
        if end == "stdin":
            assert [0, 0] == [peer.end(), program.end()]
        else:
            for each in (peer, program):
                each.process.send_signal(signal.SIGKILL)
                each.process.wait(timeout=20)
    assert [] == list(lab.spool.iterdir())
    for listened in (own, port, program.first["port"]):
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((HERE, listened), timeout=20)


def test_it_ends_in_the_middle_of_a_blob_as_well(lab: Lab) -> None:
    lab.tap.turns.append(broken_at(1_000_000))
    program, own = lab.seed()
    with socket.create_connection((HERE, own), timeout=20) as connection:
        connection.sendall(f"GET /v2/x/blobs/{DIGEST} HTTP/1.1\r\n\r\n".encode())
        assert b"HTTP/" == connection.recv(5)
        assert 0 == program.end()
    assert [] == list(lab.spool.iterdir())


# stores


def test_a_spool_drops_what_is_damaged_and_goes_on_with_what_is_not(tmp_path: Path) -> None:
    spool = Spool(str(tmp_path))
    with spool.begin(DIGEST) as draft:
        draft.write(b"x")
    with pytest.raises(DamagedError), spool.begin(DIGEST) as draft:
        draft.check()
    for start, end in ((0, 1000), (1000, len(DATA))):
        with spool.begin(DIGEST) as draft:
            assert start == draft.offset
            draft.write(DATA[start:end])
    assert spool.open(DIGEST) is None
    with spool.begin(DIGEST) as draft:
        draft.check()
        draft.keep()
    file = spool.open(DIGEST)
    assert file is not None
    with file:
        assert (DATA, []) == (file.read(), list(tmp_path.iterdir()))


def test_a_lie_of_the_controller_is_no_blob_of_the_seed(lab: Lab, tmp_path: Path) -> None:
    """A seed checks for itself."""
    lies = Tap({DIGEST: DATA}, turns=[flipped])
    bad = tmp_path / "bad" / "blobs" / "sha256"
    bad.mkdir(parents=True)
    (bad / DIGEST[7:]).write_bytes(b"".join(flipped(DATA, 0)))
    shelf_of_lies = Shelf((ContentStore([str(tmp_path / "bad")]),), lies.fetch, {DIGEST: len(DATA)}.get)  # type: ignore[arg-type]
    liar = blob_server.Registry(HERE, 0, shelf_of_lies, lambda _: True, blob_server.Allowance(None))
    liar.start()
    with closing(liar):
        program, own = lab.seed(upstream_port=liar.port)
        with pytest.raises(http.client.IncompleteRead):
            blob(own, DIGEST)
    assert 0 == program.end()
