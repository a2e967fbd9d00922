"""Bulk bytes to real nodes: OpenSSH children, opened again when they break, and what stands beside them on a node."""

import asyncio
import hashlib
import os
import signal
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from reconciler.core.observed import UnknownKind
from reconciler.images.errors import SupplyError, SupplyErrorKind
from reconciler.nodes import hosts_toml, node_blobs, save_load, ssh
from reconciler.nodes.errors import ErrorKind, NodeError, NodeUnknownError
from reconciler.nodes.openssh import Forward, OpenSsh
from reconciler.nodes.ssh import SshSession
from reconciler.nodes.targets import SshTarget
from reconciler.nodes.ways import star

from . import Lab
from .node import Node
from .real_nodes import sshd_setting, target
from .shell import wait_until

pytestmark = pytest.mark.lab

PORT = 5917
CONTENT = bytes(range(256)) * (1 << 16)  # 16 MiB

FETCH = """
import hashlib, sys, urllib.request
proof = hashlib.sha256()
with urllib.request.urlopen(sys.argv[1], timeout=90) as answer:
    for chunk in iter(lambda: answer.read(65536), b""):
        proof.update(chunk)
print(proof.hexdigest())
"""


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
            self.send_response(200)
            self.send_header("Content-Length", str(len(CONTENT)))
            self.end_headers()
            for at in range(0, len(CONTENT), 1 << 18):
                self.wfile.write(CONTENT[at : at + (1 << 18)])
                server.sent_bytes += 1 << 18
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


def fetched(node: Node, port: int = PORT) -> str:
    """The hash of what the node gets through its own loopback; why not, when it gets nothing."""
    done = node.exec(["python3", "-c", FETCH, f"http://127.0.0.1:{port}/"], check=False, timeout=120)
    return done.stdout.strip() or done.stderr.strip().splitlines()[-1]


WHOLE = hashlib.sha256(CONTENT).hexdigest()


def listening(node: Node, port: int = PORT) -> list[str]:
    lines = node.exec(["ss", "-Hltn", f"sport = :{port}"]).stdout.splitlines()
    return [line.split()[3].rpartition(":")[0] for line in lines]


def children() -> list[int]:
    """The `ssh` processes that this one started."""
    pids = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    return [int(pid) for pid in pids if Path(f"/proc/{pid}/cmdline").read_bytes().startswith(b"ssh\0-F\0")]


@asynccontextmanager
async def session_with(way_in: SshTarget) -> AsyncIterator[SshSession]:
    session = await ssh.connect(way_in, 10)
    try:
        yield session
    finally:
        await session.close()


async def until(what: str, holds: "object", seconds: float = 15) -> None:
    await asyncio.to_thread(wait_until, what, holds, seconds=seconds)  # type: ignore[arg-type]


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
    async with session_with(target(clean_lab, "node3", user="guest")) as session:
        async with hosts_toml.pointing(session, "ghcr.io", PORT) as kept:
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


async def test_a_classic_store_and_a_login_without_rights_have_no_blobs_to_read(clean_lab: Lab) -> None:
    for way_in in (target(clean_lab, "node1"), target(clean_lab, "node3", user="guest")):
        async with session_with(way_in) as session:
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
    copying = asyncio.create_task(
        save_load.copy(*ends, clean_lab.images["llamacpp"], lambda _: loop.call_soon_threadsafe(moving.set) and None)
    )
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
