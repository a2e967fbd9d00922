"""Bulk bytes to real nodes: OpenSSH children, opened again when they break, and what stands beside them on a node."""

import asyncio
import hashlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from reconciler.core.observed import UnknownKind
from reconciler.core.transfer import Relay
from reconciler.images.errors import SupplyError, SupplyErrorKind
from reconciler.nodes import hosts_toml, node_blobs, save_load, ssh
from reconciler.nodes.errors import ErrorKind, NodeError, NodeUnknownError
from reconciler.nodes.forwards import Forward
from reconciler.nodes.openssh import OpenSsh
from reconciler.nodes.relays import Relays, Way
from reconciler.nodes.ssh import SshSession
from reconciler.nodes.targets import SshTarget
from reconciler.nodes.ways import star

from . import Lab
from .node import Node
from .real_nodes import sshd_setting, target
from .shell import wait_until

pytestmark = pytest.mark.lab

PORT = 5917
PIECE = 1 << 18
CONTENT = bytes(range(256)) * (1 << 16)  # 16 MiB

WHOLE = hashlib.sha256(CONTENT).hexdigest()
BLOB = f"sha256:{WHOLE}"

FETCH = """
import hashlib, sys, time, urllib.request
proof, done, tries = hashlib.sha256(), 0, 0
while done < int(sys.argv[2]):
    try:
        request = urllib.request.Request(sys.argv[1], headers={"Range": "bytes=%d-" % done})
        with urllib.request.urlopen(request, timeout=90) as answer:
            for chunk in iter(lambda: answer.read(65536), b""):
                proof.update(chunk)
                done += len(chunk)
    except OSError:
        tries += 1
        if tries > int(sys.argv[3]):
            raise
        time.sleep(0.5)
print(proof.hexdigest())
"""
"""Tries again where it broke off, as Docker does."""


@dataclass
class Server:
    """Serves `CONTENT` on the controller's loopback, in pieces with a pause between."""

    port: int
    pause_s: float
    sent_bytes: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)


@contextmanager
def serving(pause_s: float = 0.0) -> Iterator[Server]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            start = int(self.headers.get("Range", "bytes=0-")[6:-1])
            self.send_response(206)
            self.send_header("Content-Length", str(len(CONTENT) - start))
            self.end_headers()
            for at in range(start, len(CONTENT), PIECE):
                self.wfile.write(CONTENT[at : at + PIECE])
                server.sent_bytes += len(CONTENT[at : at + PIECE])
                threading.Event().wait(server.pause_s)

        def log_message(self, *_: object) -> None:
            pass

    listener = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    listener.daemon_threads = True
    server = Server(listener.server_port, pause_s)
    threading.Thread(target=listener.serve_forever, daemon=True).start()
    yield server
    listener.shutdown()
    listener.server_close()


def fetched(node: Node, port: int = PORT, tries: int = 30) -> str:
    """The hash of what the node gets through its own loopback; why not, when it gets nothing."""
    url = f"http://127.0.0.1:{port}/v2/fleet/blobs/{BLOB}"
    done = node.exec(["python3", "-c", FETCH, url, str(len(CONTENT)), str(tries)], check=False, timeout=120)
    return done.stdout.strip() or done.stderr.strip().splitlines()[-1]


def listening(node: Node, port: int = PORT) -> list[str]:
    lines = node.exec(["ss", "-Hltn", f"sport = :{port}"]).stdout.splitlines()
    return [line.split()[3].rpartition(":")[0] for line in lines]


def children(pid: int = os.getpid()) -> list[int]:
    """The `ssh` processes that this one, or another, started."""
    pids = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(pid) for pid in pids if Path(f"/proc/{pid}/cmdline").read_bytes().startswith(b"ssh\0-F\0")]


@asynccontextmanager
async def session_with(way_in: SshTarget) -> AsyncIterator[SshSession]:
    session = await ssh.connect(way_in, 10)
    try:
        yield session
    finally:
        await session.close()


async def until(what: str, holds: Callable[[], bool], seconds: float = 15) -> None:
    await asyncio.to_thread(partial(wait_until, what, holds, seconds=seconds))


# the star


async def test_a_star_carries_bytes_on_loopback_alone_and_leaves_nothing(clean_lab: Lab) -> None:
    node = clean_lab.nodes["node1"]
    with serving() as server:
        async with star(OpenSsh(target(clean_lab, "node1")), PORT, server.port):
            assert WHOLE == await asyncio.to_thread(fetched, node)
            assert ["127.0.0.1"] == listening(node)
    assert [] == children()
    await until("the port to be free", lambda: not listening(node), 3)


async def test_a_killed_child_is_followed_by_another_on_the_same_port(clean_lab: Lab) -> None:
    node = clean_lab.nodes["node1"]
    with serving() as server:
        async with star(OpenSsh(target(clean_lab, "node1")), PORT, server.port):
            [first] = children()
            os.kill(first, signal.SIGKILL)
            await until("another child", lambda: first not in children() and bool(listening(node)))
            assert WHOLE == await asyncio.to_thread(fetched, node)


async def test_a_killed_sshd_is_waited_for(clean_lab: Lab) -> None:
    node = clean_lab.nodes["node1"]
    with serving() as server:
        async with star(OpenSsh(target(clean_lab, "node1")), PORT, server.port):
            node.stop_sshd()
            await until("the port to go", lambda: not listening(node))
            await asyncio.sleep(2)
            node.start_sshd()
            await until("the port to come back", lambda: bool(listening(node)))
            assert WHOLE == await asyncio.to_thread(fetched, node)


async def test_a_link_cut_for_20_seconds_ends_no_transfer(clean_lab: Lab) -> None:
    node = clean_lab.nodes["node1"]
    with serving(pause_s=0.05) as server:
        async with star(OpenSsh(target(clean_lab, "node1")), PORT, server.port):
            before = children()
            transfer = asyncio.create_task(asyncio.to_thread(fetched, node))
            await until("bytes to move", lambda: server.sent_bytes > 1 << 20)
            node.cut_link()
            await asyncio.sleep(20)
            assert not transfer.done()
            node.mend_link()
            assert WHOLE == await transfer
            assert before == children()
            assert len(CONTENT) == server.sent_bytes, "it began anew"


async def test_a_port_that_somebody_else_has_is_told(clean_lab: Lab) -> None:
    way_in = target(clean_lab, "node1")
    async with OpenSsh(way_in).spawn(Forward(PORT, 1)):
        with pytest.raises(NodeError) as taken:
            async with star(OpenSsh(way_in), PORT, 1):
                pass
    assert ErrorKind.CONFLICT is taken.value.kind
    assert str(PORT) in taken.value.message


async def test_a_port_of_our_own_that_is_just_let_go_is_waited_for(clean_lab: Lab) -> None:
    way_in = target(clean_lab, "node1")
    with serving() as server:
        before = await OpenSsh(way_in).open(Forward(PORT, 1))
        asyncio.get_running_loop().call_later(1.0, before.process.kill)
        async with star(OpenSsh(way_in), PORT, server.port):
            assert WHOLE == await asyncio.to_thread(fetched, clean_lab.nodes["node1"])


@pytest.mark.parametrize(
    ("setting", "kind"),
    [("GatewayPorts yes", ErrorKind.DENIED), ("AllowTcpForwarding local", ErrorKind.CONFLICT)],
)
async def test_an_sshd_that_opens_too_wide_or_not_at_all(clean_lab: Lab, setting: str, kind: ErrorKind) -> None:
    node = clean_lab.nodes["node1"]
    with sshd_setting(node, setting):
        with pytest.raises(NodeError) as refused:
            async with star(OpenSsh(target(clean_lab, "node1")), PORT, 1):
                pass
        assert kind is refused.value.kind
        assert setting.split(maxsplit=1)[0] in refused.value.hint
        await until("the port to be free", lambda: not listening(node), 3)


async def test_a_jump_host_is_in_between(clean_lab: Lab) -> None:
    """Its key is looked up in the same file, and node2 sees the connection come from it."""
    jump = clean_lab.nodes["node1"].address
    way_in = target(clean_lab, "node2", proxy_jump=f"root@{jump}")
    with serving() as server:
        async with star(OpenSsh(way_in), PORT, server.port):
            assert WHOLE == await asyncio.to_thread(fetched, clean_lab.nodes["node2"])
            peers = clean_lab.nodes["node2"].exec(["ss", "-Htn", "sport = :22"]).stdout
    assert jump in peers


async def test_only_the_pinned_host_key_passes(clean_lab: Lab) -> None:
    right, wrong = clean_lab.nodes["node1"].host_key, clean_lab.nodes["node2"].host_key
    way_in = target(clean_lab, "node1", known_hosts="/nonexistent")
    async with OpenSsh(replace(way_in, host_key=right)).spawn() as child:
        assert child.process.returncode is None
    for refused in (replace(way_in, host_key=wrong), way_in):
        with pytest.raises(NodeUnknownError) as error:
            await OpenSsh(refused).open()
        assert error.value.fact.kind in {UnknownKind.HOST_KEY_CHANGED, UnknownKind.HOST_KEY_UNKNOWN}


async def test_without_a_key_that_is_let_in_it_says_so(clean_lab: Lab, tmp_path: Path) -> None:
    way_in = target(clean_lab, "node1", user="nobody-here")
    with pytest.raises(NodeUnknownError) as error:
        await OpenSsh(way_in).open()
    assert UnknownKind.AUTH is error.value.fact.kind


async def test_sshd_chooses_a_port(clean_lab: Lab) -> None:
    node = clean_lab.nodes["node1"]
    with serving() as server:
        async with OpenSsh(target(clean_lab, "node1")).spawn(Forward(0, server.port)) as child:
            [port] = child.ports
            assert WHOLE == await asyncio.to_thread(fetched, node, port)


# the relay


def relays_of(lab: Lab) -> Relays:
    return Relays(lambda node: OpenSsh(target(lab, node)))


def relay_of(lab: Lab, seed: str, *peers: str) -> Relay:
    return Relay(seed, lab.nodes[seed].address, tuple(lab.nodes[peer].address for peer in peers))


@asynccontextmanager
async def ways(
    lab: Lab, relays: Relays, server: Server, relay: Relay | None, *nodes: str
) -> AsyncIterator[dict[str, Way]]:
    blobs = {BLOB: len(CONTENT)}
    async with AsyncExitStack() as stack:
        opening = [stack.enter_async_context(relays.way(node, PORT, server.port, relay, blobs)) for node in nodes]
        yield dict(zip(nodes, [await one for one in opening], strict=True))


async def all_fetched(lab: Lab, *nodes: str) -> list[str]:
    return list(await asyncio.gather(*(asyncio.to_thread(fetched, lab.nodes[node]) for node in nodes)))


def programs(node: Node) -> list[int]:
    """The relay programs on a node."""
    return [int(pid) for pid in node.exec(["pgrep", "-f", "python3 -I -u -c"], check=False).stdout.split()]


async def until_gone(lab: Lab, *nodes: str) -> None:
    for name in nodes:
        node = lab.nodes[name]
        await until(f"nothing to be left on {name}", lambda at=node: not listening(at) and not programs(at))  # type: ignore[misc]


TRIO = ("node1", "node2", "node3")


async def test_three_nodes_get_a_blob_and_the_controller_sends_it_once(clean_lab: Lab) -> None:
    """A seed of the classic store keeps it in a file without a name; nothing is left at the end."""
    relay = relay_of(clean_lab, *TRIO)
    with serving(pause_s=0.01) as server:
        async with ways(clean_lab, relays_of(clean_lab), server, relay, *TRIO) as way:
            assert ["controller", *["relay by node1"] * 2] == [way[node].via for node in TRIO]
            assert [WHOLE] * 3 == await all_fetched(clean_lab, *TRIO)
            assert len(CONTENT) == server.sent_bytes
        await until_gone(clean_lab, *TRIO)
    assert [] == children()


async def test_a_seed_that_needs_nothing_itself_passes_on(clean_lab: Lab) -> None:
    """And its own port is its own meanwhile, for an image that only it needs."""
    relays, relay = relays_of(clean_lab), relay_of(clean_lab, "node3", "node1", "node2")
    with serving() as server:
        async with ways(clean_lab, relays, server, relay, "node1", "node2") as way:
            assert ["relay by node3"] * 2 == [item.via for item in way.values()]
            async with ways(clean_lab, relays, server, None, "node3"):
                assert [WHOLE] * 3 == await all_fetched(clean_lab, *TRIO)
            assert len(CONTENT) == server.sent_bytes
        await until_gone(clean_lab, *TRIO)


async def test_a_seed_that_dies_in_the_middle_is_passed_by(clean_lab: Lab) -> None:
    """Peers and the seed's own node go on where they were, straight from the controller."""
    with serving(pause_s=0.05) as server:
        async with ways(clean_lab, relays_of(clean_lab), server, relay_of(clean_lab, *TRIO), *TRIO) as way:
            fetching = asyncio.create_task(all_fetched(clean_lab, *TRIO))
            await until("bytes to move", lambda: server.sent_bytes > 1 << 20)
            [program] = programs(clean_lab.nodes["node1"])
            clean_lab.nodes["node1"].exec(["kill", "-9", str(program)])
            assert [WHOLE] * 3 == await fetching
            assert ["controller"] * 3 == [item.via for item in way.values()]
            assert all("node1" in item.why for item in way.values())


async def test_a_forwarder_that_dies_is_started_again(clean_lab: Lab) -> None:
    relay = relay_of(clean_lab, "node1", "node2")
    with serving(pause_s=0.03) as server:
        async with ways(clean_lab, relays_of(clean_lab), server, relay, "node2") as way:
            fetching = asyncio.create_task(all_fetched(clean_lab, "node2"))
            await until("bytes to move", lambda: server.sent_bytes > 1 << 20)
            [program] = programs(clean_lab.nodes["node2"])
            clean_lab.nodes["node2"].exec(["kill", "-9", str(program)])
            assert [WHOLE] == await fetching
            assert "relay by node1" == way["node2"].via
        assert len(CONTENT) == server.sent_bytes


KNOCK = """
import socket, sys
door = socket.create_connection((sys.argv[1], int(sys.argv[2])), 5)
try:
    door.sendall(sys.argv[3].encode() + b"\\nGET /v2/ HTTP/1.1\\r\\nConnection: close\\r\\n\\r\\n")
    print(door.recv(12))
except ConnectionError:
    print(b"")
"""


async def test_a_stranger_is_refused_by_the_seed(clean_lab: Lab) -> None:
    """Another node that knows the token, and the peer without it; on the port of the node's own Docker, nobody."""
    relay = relay_of(clean_lab, "node1", "node2")
    with serving() as server:
        async with ways(clean_lab, relays_of(clean_lab), server, relay, "node2") as way:
            seed = way["node2"].seed
            assert seed is not None

            def knock(node: str, word: str) -> str:
                door = [relay.address, str(seed.port), word]
                return clean_lab.nodes[node].exec(["python3", "-c", KNOCK, *door]).stdout.strip()

            assert "b'HTTP/1.1 200'" == knock("node2", f"FLEET {seed.token}")
            assert "b''" == knock("node4", f"FLEET {seed.token}")
            assert "b''" == knock("node2", "FLEET 0123")
            assert ["127.0.0.1"] == listening(clean_lab.nodes["node1"])
            assert ["127.0.0.1"] == listening(clean_lab.nodes["node2"])


async def test_where_there_is_no_relay_the_bytes_come_straight(clean_lab: Lab) -> None:
    """An address that is not the seed's; a peer that it does not know; a Python that does not run; a port in use."""
    node3 = clean_lab.nodes["node3"]
    elsewhere = replace(relay_of(clean_lab, "node3", "node1"), address="10.91.99.99")
    unknown = relay_of(clean_lab, "node3", "node2")
    known = relay_of(clean_lab, "node3", "node1")
    with serving() as server:
        for relay in (elsewhere, unknown):
            async with ways(clean_lab, relays_of(clean_lab), server, relay, "node1") as way:
                assert "controller" == way["node1"].via
                assert "node" in way["node1"].why
                assert [WHOLE] == await all_fetched(clean_lab, "node1")
        node3.exec(["mount", "--bind", "/bin/false", "/usr/bin/python3"])
        try:
            async with ways(clean_lab, relays_of(clean_lab), server, known, "node1") as way:
                said = ("the relay on node3 ended as it started", "ended: without a word")  # whichever is seen first
                assert any(text in way["node1"].why for text in said)
        finally:
            node3.exec(["umount", "/usr/bin/python3"])
        async with (
            OpenSsh(target(clean_lab, "node3")).spawn(Forward(PORT, 1)),
            ways(clean_lab, relays_of(clean_lab), server, known, "node1") as way,
        ):
            assert "in use" in way["node1"].why
            assert [WHOLE] == await all_fetched(clean_lab, "node1")


CONTROLLER = """
import asyncio
from tests.lab import Lab
from tests.lab.real_nodes import target
from tests.lab.test_transport import *

async def main():
    lab = Lab.attach(sys.argv[1])
    relays = relays_of(lab)
    with serving(pause_s=0.2) as server:
        async with AsyncExitStack() as stack:
            relay = relay_of(lab, "node1", "node2")
            await stack.enter_async_context(ways(lab, relays, server, relay, "node1", "node2"))
            await stack.enter_async_context(ways(lab, relays, server, None, "node3"))
            session = await stack.enter_async_context(session_with(target(lab, "node3")))
            assert await stack.enter_async_context(hosts_toml.pointing(session, "ghcr.io", PORT))
            print("up", flush=True)
            await asyncio.gather(*(asyncio.to_thread(fetched, lab.nodes[node], tries=0) for node in TRIO))

asyncio.run(main())
"""


async def test_a_controller_that_is_killed_leaves_nothing(clean_lab: Lab) -> None:
    """In the middle of transfers: no program, no listener, no file on the nodes, and no `ssh` here."""
    argv = [sys.executable, "-c", CONTROLLER, clean_lab.name]
    controller = subprocess.Popen(argv, cwd=Path(__file__).parents[2], stdout=subprocess.PIPE)
    try:
        assert controller.stdout is not None
        assert b"up\n" == await asyncio.to_thread(controller.stdout.readline)
        assert hosts_file(clean_lab.nodes["node3"]).exists()
        await asyncio.sleep(2)
        ours = children(controller.pid)
        assert 3 == len(ours)
    finally:
        controller.kill()
        controller.wait()
    await until_gone(clean_lab, *TRIO)
    assert not hosts_file(clean_lab.nodes["node3"]).parent.parent.exists()
    await until("the ssh children to end", lambda: not any(Path(f"/proc/{pid}").exists() for pid in ours))


# the original name

CERTS = "etc/docker/certs.d"


def hosts_file(node: Node) -> Path:
    return node.disk / CERTS / "ghcr.io" / "hosts.toml"


async def test_the_name_points_to_loopback_only_meanwhile(clean_lab: Lab) -> None:
    node = clean_lab.nodes["node3"]
    async with session_with(target(clean_lab, "node3")) as session:
        async with hosts_toml.pointing(session, "ghcr.io", PORT) as kept:
            assert kept
            assert f"http://127.0.0.1:{PORT}" in hosts_file(node).read_text()
            async with hosts_toml.pointing(session, "ghcr.io", PORT) as again:
                assert again
            assert hosts_file(node).exists(), "the first one still needs it"
            async with hosts_toml.pointing(session, "ghcr.io", PORT + 1) as elsewhere:
                assert not elsewhere
        assert not (node.disk / CERTS).exists()


async def test_the_file_of_somebody_else_stays_and_one_of_ours_is_taken_over(clean_lab: Lab) -> None:
    node = clean_lab.nodes["node3"]
    hosts_file(node).parent.mkdir(parents=True)
    try:
        async with session_with(target(clean_lab, "node3")) as session:
            hosts_file(node).write_text("# theirs\n")
            async with hosts_toml.pointing(session, "ghcr.io", PORT) as kept:
                assert not kept
            assert "# theirs\n" == hosts_file(node).read_text()
            hosts_file(node).write_text(f"{hosts_toml.MARK}\n")
            async with hosts_toml.pointing(session, "ghcr.io", PORT) as kept:
                assert kept
            assert not hosts_file(node).exists()
    finally:
        node.exec(["rm", "-rf", f"/{CERTS}"])


async def test_without_permission_the_name_is_not_kept(clean_lab: Lab) -> None:
    async with (
        session_with(target(clean_lab, "node3", user="guest")) as session,
        hosts_toml.pointing(session, "ghcr.io", PORT) as kept,
    ):
        assert not kept


# blobs of a node


async def test_a_node_that_has_an_image_gives_its_blobs(clean_lab: Lab) -> None:
    clean_lab.preload("tiny", ["node3"])
    digest = clean_lab.images["tiny"].partition("@")[2]
    async with session_with(target(clean_lab, "node3")) as session:
        folders = await node_blobs.probe(session)
    assert ("/var/lib/docker/containerd/daemon/io.containerd.content.v1.content",) == folders
    blobs = node_blobs.NodeBlobs(OpenSsh(target(clean_lab, "node3")), folders)
    manifest = await asyncio.to_thread(blobs.document, "any/thing", digest)
    assert digest == f"sha256:{hashlib.sha256(manifest).hexdigest()}"

    def part(offset: int) -> bytes:
        with blobs.blob("any/thing", digest, offset) as chunks:
            return b"".join(chunks)

    assert manifest[100:] == await asyncio.to_thread(part, 100)
    with pytest.raises(SupplyError) as missing:
        await asyncio.to_thread(blobs.document, "any/thing", "sha256:" + "0" * 64)
    assert SupplyErrorKind.NOT_FOUND is missing.value.kind
    assert [] == children()


async def test_a_login_without_rights_has_no_blobs_to_read(clean_lab: Lab) -> None:
    clean_lab.preload("tiny", ["node3"])
    async with session_with(target(clean_lab, "node3", user="guest")) as session:
        assert () == await node_blobs.probe(session)


async def test_a_node_that_cannot_be_reached_is_no_source(clean_lab: Lab) -> None:
    blobs = node_blobs.NodeBlobs(OpenSsh(target(clean_lab, "node3", port=1)), ["/x"])
    with pytest.raises(SupplyError) as error:
        await asyncio.to_thread(blobs.document, "any/thing", "sha256:" + "0" * 64)
    assert SupplyErrorKind.NO_ANSWER is error.value.kind


# save and load


@pytest.mark.parametrize("to", ["node2", "node4"])
@pytest.mark.parametrize("source", ["node1", "node3"])
async def test_an_image_is_copied_between_both_stores(clean_lab: Lab, source: str, to: str) -> None:
    clean_lab.preload("tiny", [source])
    clean_lab.nodes[source].docker("tag", clean_lab.images["tiny"], "fleet-test/tiny:1")
    clean_lab.nodes[to].remove_images()
    told: list[int] = []
    ends = OpenSsh(target(clean_lab, source)), OpenSsh(target(clean_lab, to))
    await save_load.copy(*ends, "fleet-test/tiny:1", told.append)
    assert "fleet-test/tiny:1" in clean_lab.nodes[to].docker("images", "--format", "{{.Repository}}:{{.Tag}}")
    assert told == sorted(told)
    assert told[-1] > 100_000
    assert [] == children()


async def test_which_end_failed_is_told(clean_lab: Lab) -> None:
    way_in = target(clean_lab, "node1")
    good, deaf = OpenSsh(way_in), OpenSsh(replace(way_in, docker_socket="/run/nobody.sock"))
    clean_lab.preload("tiny", ["node1"])
    reference = clean_lab.images["tiny"]
    with pytest.raises(NodeError) as missing:
        await save_load.copy(good, good, "nobody/nothing:1", lambda _: None)
    assert ErrorKind.NOT_FOUND is missing.value.kind
    assert missing.value.message.startswith("docker save")
    with pytest.raises(NodeError) as unloaded:
        await save_load.copy(good, deaf, reference, lambda _: None)
    assert unloaded.value.message.startswith("docker load")
    with pytest.raises(NodeUnknownError):
        await save_load.copy(OpenSsh(replace(way_in, port=1)), good, reference, lambda _: None)
    with pytest.raises(NodeUnknownError):
        await save_load.copy(good, OpenSsh(replace(way_in, port=1)), reference, lambda _: None)


async def test_a_copy_that_is_cancelled_ends_both(clean_lab: Lab) -> None:
    clean_lab.preload("llamacpp", ["node3"])
    clean_lab.nodes["node4"].remove_images()
    ends = OpenSsh(target(clean_lab, "node3")), OpenSsh(target(clean_lab, "node4"))
    moving = asyncio.Event()
    loop = asyncio.get_running_loop()

    def see(_: int) -> None:
        loop.call_soon_threadsafe(moving.set)

    copying = asyncio.create_task(save_load.copy(*ends, clean_lab.images["llamacpp"], see))
    await moving.wait()
    copying.cancel()
    with pytest.raises(asyncio.CancelledError):
        await copying
    assert [] == children()


async def test_an_archive_is_read_as_it_comes(clean_lab: Lab) -> None:
    clean_lab.preload("tiny", ["node3"])
    archive = b""
    async for chunk in save_load.export(OpenSsh(target(clean_lab, "node3")), clean_lab.images["tiny"]):
        archive += chunk
    assert b"ustar" == archive[257:262]
    with pytest.raises(NodeError) as missing:
        async for _ in save_load.export(OpenSsh(target(clean_lab, "node3")), "nobody/nothing:1"):
            pass
    assert ErrorKind.NOT_FOUND is missing.value.kind
