"""Images on real nodes of both stores: by digest, through the connection, and believed only by content."""

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest

from reconciler.core.desired import ImagePin
from reconciler.core.observed import LocalImage, NodeFacts, SourceImage, SourceMissing, SourceUnknown
from reconciler.images.supply import Supply
from reconciler.images.vault import Vault
from reconciler.nodes.errors import ErrorKind, NodeError
from reconciler.nodes.protocols import Progress

from . import Lab
from .real_nodes import fleet_of, pin_of, sshd_setting, talker, target

pytestmark = pytest.mark.lab

BOTH_STORES = ("node1", "node3")
PLATFORM = "linux/amd64"


class Steps(list[Progress]):
    """All progress that was told."""

    def __call__(self, progress: Progress) -> None:
        self.append(progress)


@pytest.mark.parametrize("image", ["llamacpp", "tiny-multi"])
@pytest.mark.parametrize("name", BOTH_STORES)
async def test_an_image_is_staged_by_digest_and_stays(bare_lab: Lab, name: str, image: str) -> None:
    """A manifest as well as an index; again without effect; not taken by a prune; and a rank starts from it."""
    pin = pin_of(bare_lab, image)
    async with fleet_of(target(bare_lab, name)) as fleet:
        node = await fleet.connect(name, 10)
        assert await node.images.present(pin) is None
        steps = Steps()
        staged = await node.images.stage(pin, PLATFORM, steps)
        assert steps
        assert steps[-1].total_bytes in {None, steps[-1].done_bytes}
        again = Steps()
        assert staged.id == (await node.images.stage(pin, PLATFORM, again)).id
        assert [] == again
        bare_lab.nodes[name].docker("image", "prune", "-f")
        kept = await node.images.present(pin)
        assert kept is not None
        assert f"{pin.registry}/{pin.repository}:sha-{pin.digest[7:19]}" in kept.names
        facts = await node.observer.observe()
        assert kept == facts.image_for(pin)
        await node.containers.create("fleet-t-r0-v1", talker(pin), staged.id, {}, {})
        await node.containers.start("fleet-t-r0-v1")


async def test_the_same_content_has_other_ids_in_the_two_stores(bare_lab: Lab) -> None:
    pin = pin_of(bare_lab, "tiny")
    ids = []
    for name in BOTH_STORES:
        async with fleet_of(target(bare_lab, name)) as fleet:
            ids.append((await (await fleet.connect(name, 10)).images.stage(pin, PLATFORM, Steps())).id)
    assert [bare_lab.built["tiny"].config_digest, pin.digest] == ids


@pytest.mark.parametrize("name", BOTH_STORES)
async def test_another_platform_is_refused_and_leaves_nothing(bare_lab: Lab, name: str) -> None:
    """The classic store would pull it without a word."""
    pin = pin_of(bare_lab, "llamacpp-arm64")
    async with fleet_of(target(bare_lab, name)) as fleet:
        node = await fleet.connect(name, 10)
        with pytest.raises(NodeError) as refused:
            await node.images.stage(pin, PLATFORM, Steps())
        assert ErrorKind.REFUSED is refused.value.kind
        assert "platform" in refused.value.message + refused.value.hint
        assert () == (await node.observer.observe()).images


@pytest.mark.parametrize("name", BOTH_STORES)
async def test_what_the_registry_does_not_have_is_not_found(bare_lab: Lab, name: str) -> None:
    pin = pin_of(bare_lab, "tiny")
    absent = "sha256:" + "0" * 64
    pins = {
        "digest": replace(pin, digest=absent),
        "repository": replace(pin, repository="nobody/nothing"),
        "local build": ImagePin(absent, absent, "id"),
    }
    async with fleet_of(target(bare_lab, name)) as fleet:
        node = await fleet.connect(name, 10)
        for what, wrong in pins.items():
            with pytest.raises(NodeError) as missing:
                await node.images.stage(wrong, PLATFORM, Steps())
            assert ErrorKind.NOT_FOUND is missing.value.kind, (what, missing.value.message)


@pytest.mark.parametrize("name", BOTH_STORES)
async def test_a_local_build_is_found_by_its_id(bare_lab: Lab, name: str) -> None:
    bare_lab.preload("tiny", [name])
    node_id = bare_lab.nodes[name].docker("images", "-q", "--no-trunc")
    async with fleet_of(target(bare_lab, name)) as fleet:
        node = await fleet.connect(name, 10)
        staged = await node.images.stage(ImagePin(node_id, node_id, "id"), PLATFORM, Steps())
    assert node_id == staged.id


@pytest.mark.parametrize("name", BOTH_STORES)
async def test_at_the_same_time_it_is_pulled_once(bare_lab: Lab, name: str) -> None:
    """And two images through the same door at once are no trouble."""
    pin, other = pin_of(bare_lab, "llamacpp"), pin_of(bare_lab, "tiny")
    steps = Steps(), Steps()
    async with fleet_of(target(bare_lab, name)) as fleet:
        node = await fleet.connect(name, 10)
        first, second, third = await asyncio.gather(
            node.images.stage(pin, PLATFORM, steps[0]),
            node.images.stage(pin, PLATFORM, steps[1]),
            node.images.stage(other, PLATFORM, Steps()),
        )
    assert first.id == second.id != third.id
    assert [] in steps


class SlowRegistry(BaseHTTPRequestHandler):
    """Stands before the lab's registry and sends blobs a little at a time."""

    protocol_version = "HTTP/1.1"
    default_request_version = "HTTP/1.1"
    upstream = ""
    pause_s = 0.01
    damage = False

    def do_GET(self) -> None:
        accept = ", ".join(self.headers.get_all("Accept", ["*/*"]))
        reply = httpx.get(self.upstream + self.path, headers={"Accept": accept})
        body = reply.content
        is_blob = "/blobs/" in self.path and len(body) > 10_000
        if is_blob and self.damage:
            body = body[:5000] + bytes([body[5000] ^ 1]) + body[5001:]
        self.send_response(reply.status_code)
        for name in ("Content-Type", "Docker-Content-Digest", "Docker-Distribution-Api-Version"):
            if name in reply.headers:
                self.send_header(name, reply.headers[name])
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "HEAD":
            return
        for at in range(0, len(body), 100_000):
            if is_blob:
                time.sleep(self.pause_s)
            self.wfile.write(body[at : at + 100_000])

    do_HEAD = do_GET  # noqa: N815 - the library's name

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def slow_registry(lab: Lab, *, damage: bool = False, pause_s: float = 0.01) -> Iterator[str]:
    """The address of a slow registry with the lab's images."""
    values = {"upstream": f"http://{lab.registry.endpoint}", "damage": damage, "pause_s": pause_s}
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (SlowRegistry,), values))
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def listeners_on(facts: NodeFacts, port: int) -> list[str]:
    return [item.address for item in facts.listeners if item.port == port]


async def under_way(staging: "asyncio.Task[LocalImage]", steps: Steps) -> None:
    """Until bytes move."""
    while not any(step.done_bytes for step in steps):
        await asyncio.sleep(0.05)
        assert not staging.done(), staging


@pytest.mark.parametrize("name", BOTH_STORES)
async def test_a_cancelled_pull_ends_at_once_and_leaves_no_door(bare_lab: Lab, name: str) -> None:
    """The registry is offered on the node's loopback alone, and only meanwhile. Afterwards it can be staged."""
    pin = replace(pin_of(bare_lab, "llamacpp"), registry="registry.example")
    with slow_registry(bare_lab) as url:
        async with fleet_of(target(bare_lab, name), endpoints={"registry.example": url}) as fleet:
            node = await fleet.connect(name, 10)
            steps = Steps()
            staging = asyncio.create_task(node.images.stage(pin, PLATFORM, steps))
            await under_way(staging, steps)
            assert ["127.0.0.1"] == listeners_on(await node.observer.observe(), 5917)
            since = time.monotonic()
            staging.cancel()
            with pytest.raises(asyncio.CancelledError):
                await staging
            assert time.monotonic() - since < 2.0
            await asyncio.sleep(0.3)
            assert [] == listeners_on(await node.observer.observe(), 5917)
            assert await node.images.present(pin) is None
            await node.images.stage(pin, PLATFORM, Steps())
            name_and_tag = f"registry.example/{pin.repository}:sha-{pin.digest[7:19]}"
            assert name_and_tag in (await node.images.stage(pin, PLATFORM, Steps())).names


@pytest.mark.parametrize("name", BOTH_STORES)
async def test_damaged_bytes_never_count(bare_lab: Lab, name: str) -> None:
    pin = replace(pin_of(bare_lab, "tiny"), registry="registry.example")
    with slow_registry(bare_lab, damage=True, pause_s=0) as url:
        async with fleet_of(target(bare_lab, name), endpoints={"registry.example": url}) as fleet:
            node = await fleet.connect(name, 10)
            with pytest.raises(NodeError):
                async with asyncio.timeout(60):
                    await node.images.stage(pin, PLATFORM, Steps())
            assert await node.images.present(pin) is None


async def test_a_port_that_is_taken_is_told(bare_lab: Lab) -> None:
    node1 = bare_lab.nodes["node1"]
    endpoints = {"registry.example": f"http://{bare_lab.registry.endpoint}"}
    async with fleet_of(target(bare_lab, "node1"), endpoints=endpoints) as fleet:
        node = await fleet.connect("node1", 10)
        pin = replace(pin_of(bare_lab, "llamacpp"), registry="registry.example")
        bare_lab.preload("tiny", ["node1"])
        serve = ["docker", "run", "-d", "--network", "host", bare_lab.images["tiny"]]
        node1.exec([*serve, "busybox", "httpd", "-f", "-p", "127.0.0.1:5917"])
        with pytest.raises(NodeError) as taken:
            await node.images.stage(pin, PLATFORM, Steps())
    assert ErrorKind.CONFLICT is taken.value.kind
    assert "5917" in taken.value.message


async def test_a_node_lost_in_the_middle_is_a_lost_reply(bare_lab: Lab) -> None:
    pin = replace(pin_of(bare_lab, "llamacpp"), registry="registry.example")
    with slow_registry(bare_lab) as url:
        async with fleet_of(target(bare_lab, "node3"), endpoints={"registry.example": url}) as fleet:
            node = await fleet.connect("node3", 10)
            steps = Steps()
            staging = asyncio.create_task(node.images.stage(pin, PLATFORM, steps))
            await under_way(staging, steps)
            bare_lab.nodes["node3"].stop_sshd()
            with pytest.raises(NodeError) as lost:
                async with asyncio.timeout(10):
                    await staging
    assert lost.value.is_transport


async def test_an_image_without_its_layers_does_not_count(bare_lab: Lab) -> None:
    """The containerd store lists an index whose layers are missing, and answers 200 for it."""
    node3, node4 = bare_lab.nodes["node3"], bare_lab.nodes["node4"]
    pin = pin_of(bare_lab, "tiny-multi")
    bare_lab.preload("tiny-multi", ["node3"])
    strip = "mkdir /root/x; cd /root/x; tar xf ../whole.tar; find blobs -size +100k -delete; tar cf ../part.tar ."
    save = (
        f"docker tag {pin.digest} whole:1; docker save whole:1 > /root/whole.tar; {strip}; rm -r /root/x ../whole.tar"
    )
    node3.exec(["sh", "-c", save])
    (node3.disk / "root" / "part.tar").rename(node4.disk / "root" / "part.tar")
    node4.exec(["sh", "-c", "docker load < /root/part.tar; rm /root/part.tar"], check=False)
    assert pin.digest in node4.docker("images", "-a", "--no-trunc")
    async with fleet_of(target(bare_lab, "node4")) as fleet:
        node = await fleet.connect("node4", 10)
        assert await node.images.present(pin) is None
        assert (await node.observer.observe()).image_for(pin) is None
        await node.images.stage(pin, PLATFORM, Steps())


async def test_a_registry_describes_what_it_has(clean_lab: Lab, own_vault: Path) -> None:
    sources = Supply(Vault(own_vault), {"closed.example": "http://127.0.0.1:1"})
    single = await sources.describe(pin_of(clean_lab, "tiny"))
    assert isinstance(single, SourceImage)
    [(platform, size)] = single.bytes_by_platform
    assert PLATFORM == platform
    assert 0 < size - clean_lab.built["tiny"].compressed_bytes < 2000, "the layers and the config"
    multi = await sources.describe(pin_of(clean_lab, "tiny-multi"))
    assert isinstance(multi, SourceImage)
    assert ("linux/amd64", "linux/arm64") == multi.platforms
    pin = pin_of(clean_lab, "tiny")
    assert isinstance(await sources.describe(replace(pin, digest="sha256:" + "0" * 64)), SourceMissing)
    other = "sha256:" + "1" * 64
    for registry in ("127.0.0.1:1", "closed.example"):
        assert isinstance(await sources.describe(replace(pin, registry=registry, digest=other)), SourceUnknown)
    assert isinstance(await sources.describe(ImagePin(pin.digest, pin.digest, "id")), SourceUnknown)


async def test_an_image_that_shares_unpacked_layers_counts(bare_lab: Lab) -> None:
    """The containerd store fetches no layer that another image unpacked: listed as incomplete, but it runs."""
    node1, node4 = bare_lab.nodes["node1"], bare_lab.nodes["node4"]
    pin = pin_of(bare_lab, "llamacpp")
    bare_lab.preload("llamacpp", ["node1"])
    node1.exec(["sh", "-c", f"docker tag {pin.reference} old:1; docker save old:1 > /root/old.tar"])
    (node1.disk / "root" / "old.tar").rename(node4.disk / "root" / "old.tar")
    node4.exec(["sh", "-c", "docker load < /root/old.tar; rm /root/old.tar"])
    async with fleet_of(target(bare_lab, "node4")) as fleet:
        node = await fleet.connect("node4", 10)
        staged = await node.images.stage(pin, PLATFORM, Steps())
        steps = Steps()
        await node.images.stage(pin, PLATFORM, steps)
        assert not steps, "it was brought again"
        assert (await node.observer.observe()).image_for(pin) is not None
        made = await node.containers.create("fleet-t-r0-v1", talker(pin), staged.id, {}, {})
        await node.containers.start(made)


@pytest.mark.parametrize(
    ("setting", "kind"),
    [("GatewayPorts yes", ErrorKind.DENIED), ("AllowTcpForwarding local", ErrorKind.CONFLICT)],
)
async def test_an_sshd_that_opens_the_door_too_wide_or_not_at_all(bare_lab: Lab, setting: str, kind: ErrorKind) -> None:
    """With `GatewayPorts yes` the whole network could pull through the node."""
    with sshd_setting(bare_lab.nodes["node1"], setting):
        async with fleet_of(target(bare_lab, "node1")) as fleet:
            node = await fleet.connect("node1", 10)
            with pytest.raises(NodeError) as refused:
                await node.images.stage(pin_of(bare_lab, "tiny"), PLATFORM, Steps())
    assert refused.value.kind is kind
    assert setting.split(maxsplit=1)[0] in refused.value.hint
