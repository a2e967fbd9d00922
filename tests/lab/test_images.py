"""Images between real daemons of both stores: what moves, what never counts, and what goes on when something breaks."""

import asyncio
import contextlib
import functools
import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from reconciler.core.desired import ImagePin
from reconciler.core.lock import Lock
from reconciler.core.observed import LocalImage, SourceImage
from reconciler.core.transfer import Relay
from reconciler.nodes.errors import ErrorKind, NodeError
from reconciler.nodes.ssh_fleet import SshFleet
from specs import Images

from . import Lab
from .fleet_cli import desk
from .node import Node
from .real_nodes import fleet_of, pin_of, talker, target
from .shell import wait_until
from .test_nodes_images import BOTH_STORES, PLATFORM, Steps, slow_registry, under_way

pytestmark = pytest.mark.lab

ELSEWHERE = "registry.example"
"""A registry's name that no node can reach: all there is of it comes from the controller."""

CONTENT = "docker/containerd/daemon/io.containerd.content.v1.content/blobs/sha256"


def elsewhere(lab: Lab, image: str) -> ImagePin:
    """A lab image under a name of another registry."""
    pin = pin_of(lab, image)
    return replace(pin, registry=ELSEWHERE, reference=f"{ELSEWHERE}/{pin.repository}@{pin.digest}")


def registry(lab: Lab) -> dict[str, str]:
    return {ELSEWHERE: f"http://{lab.registry.endpoint}"}


async def staged(fleet: SshFleet, name: str, pin: ImagePin, relay: Relay | None = None) -> LocalImage:
    node = await fleet.connect(name, 10)
    return await node.images.stage(pin, PLATFORM, Steps(), relay)


async def locked(fleet: SshFleet, pin: ImagePin) -> Lock:
    """What the registry says of it, as `fleet pin` would lock it."""
    source = await fleet.sources.describe(pin)
    assert isinstance(source, SourceImage)
    assert source.image is not None
    return Lock((source.image,))


def blobs_in(vault: Path) -> dict[str, int]:
    return {path.name: path.stat().st_size for path in (vault / "blobs" / "sha256").glob("*")}


# what moves


@pytest.mark.parametrize("name", BOTH_STORES)
async def test_only_the_missing_layer_moves(bare_lab: Lab, name: str, own_vault: Path) -> None:
    """`llamacpp` is `tiny` and a layer more: of what the node has, nothing leaves the controller or comes to it."""
    tiny, engine = elsewhere(bare_lab, "tiny"), elsewhere(bare_lab, "llamacpp")
    async with fleet_of(target(bare_lab, name), endpoints=registry(bare_lab)) as fleet:
        await staged(fleet, name, tiny)
        base_bytes = fleet.sent_bytes
        await staged(fleet, name, engine)
        layer = bare_lab.built["llamacpp"].compressed_bytes - bare_lab.built["tiny"].compressed_bytes
        moved = fleet.sent_bytes - base_bytes
    assert layer <= moved <= layer + 10_000
    assert layer + base_bytes <= sum(blobs_in(own_vault).values()) <= layer + base_bytes + 20_000


@pytest.mark.parametrize("name", BOTH_STORES)
async def test_with_a_full_vault_no_registry_is_needed(bare_lab: Lab, name: str) -> None:
    pin = elsewhere(bare_lab, "tiny")
    async with fleet_of(target(bare_lab, name), endpoints=registry(bare_lab)) as fleet:
        await staged(fleet, name, pin)
    forget(bare_lab, name)
    async with fleet_of(target(bare_lab, name), endpoints={ELSEWHERE: "http://127.0.0.1:9"}) as fleet:
        node = await fleet.connect(name, 10)
        assert await node.images.present(pin) is None
        await staged(fleet, name, pin)


async def test_the_original_name_is_kept_where_the_daemon_can(bare_lab: Lab) -> None:
    """By its settings with the containerd store; the classic store runs it by its content. No setting is left."""
    pin = elsewhere(bare_lab, "tiny")
    targets = [target(bare_lab, name) for name in BOTH_STORES]
    async with fleet_of(*targets, endpoints=registry(bare_lab)) as fleet:
        for name in BOTH_STORES:
            await staged(fleet, name, pin)
            node = await fleet.connect(name, 10)
            image = await node.images.present(pin)
            assert image is not None
            made = await node.containers.create("fleet-t-r0-v1", talker(pin), image.id, {}, {})
            await node.containers.start(made)
    node3 = bare_lab.nodes["node3"]
    digests = node3.docker("image", "inspect", "--format", "{{json .RepoDigests}}", pin.reference)
    assert f'["{pin.reference}"]' == digests, "no name of a loopback registry beside it"
    assert [] == list((node3.disk / "etc/docker").glob("certs.d/**/*.toml"))


async def test_a_setting_of_the_operators_own_is_left_alone(bare_lab: Lab) -> None:
    node3, pin = bare_lab.nodes["node3"], elsewhere(bare_lab, "tiny")
    own = node3.disk / "etc/docker/certs.d" / ELSEWHERE / "hosts.toml"
    own.parent.mkdir(parents=True)
    own.write_text('server = "https://mirror.example"\n')
    try:
        async with fleet_of(target(bare_lab, "node3"), endpoints=registry(bare_lab)) as fleet:
            await staged(fleet, "node3", pin)
        assert 'server = "https://mirror.example"\n' == own.read_text()
    finally:
        shutil.rmtree(own.parents[1])


@pytest.mark.parametrize("name", BOTH_STORES)
async def test_the_same_content_under_another_name_is_named_and_not_moved(bare_lab: Lab, name: str) -> None:
    there, pin = pin_of(bare_lab, "llamacpp"), elsewhere(bare_lab, "llamacpp")
    bare_lab.preload("llamacpp", [name])
    async with fleet_of(target(bare_lab, name), endpoints=registry(bare_lab)) as fleet:
        image = await staged(fleet, name, pin)
        assert 0 == fleet.sent_bytes
    assert f"{ELSEWHERE}/{there.repository}:sha-{pin.digest[7:19]}" in bare_lab.nodes[name].docker(
        "images", "--format", "{{.Repository}}:{{.Tag}}"
    )
    assert image.usable


async def test_a_loaded_copy_counts_on_the_classic_store_by_its_config(bare_lab: Lab) -> None:
    """`docker save | docker load` loses the digest, and not the content: nothing is transferred again."""
    node1, node2, pin = bare_lab.nodes["node1"], bare_lab.nodes["node2"], pin_of(bare_lab, "llamacpp")
    bare_lab.preload("llamacpp", ["node1"])
    node1.exec(["sh", "-c", f"docker save {pin.reference} > /root/a.tar"])
    (node1.disk / "root/a.tar").rename(node2.disk / "root/a.tar")
    node2.exec(["sh", "-c", "docker load -q < /root/a.tar; rm /root/a.tar"])
    async with fleet_of(target(bare_lab, "node2")) as fleet:
        await staged(fleet, "node2", pin)
        assert fleet.sent_bytes < 20_000


# who passes on


async def test_each_byte_leaves_the_controller_once(bare_lab: Lab) -> None:
    pin = elsewhere(bare_lab, "llamacpp")
    names = ["node1", "node2", "node3", "node4"]
    addresses = {name: bare_lab.nodes[name].address for name in names}
    relay = Relay("node1", addresses["node1"], tuple(addresses[name] for name in names[1:]))
    async with fleet_of(*(target(bare_lab, name) for name in names), endpoints=registry(bare_lab)) as fleet:
        await asyncio.gather(*(staged(fleet, name, pin, relay) for name in names))
        assert fleet.sent_bytes <= 1.05 * bare_lab.built["llamacpp"].compressed_bytes


async def test_a_node_that_has_it_all_serves_its_neighbour(bare_lab: Lab, own_vault: Path) -> None:
    """The registry is gone and the vault is empty: the containerd store's own blobs are served."""
    pin = elsewhere(bare_lab, "llamacpp")
    targets = [target(bare_lab, name) for name in ("node3", "node4", "node2")]
    async with fleet_of(*targets, endpoints=registry(bare_lab)) as fleet:
        await staged(fleet, "node3", pin)
        lock = await locked(fleet, pin)
    for blob in (own_vault / "blobs" / "sha256").iterdir():
        blob.unlink()
    addresses = {name: bare_lab.nodes[name].address for name in ("node2", "node3", "node4")}
    relay = Relay("node3", addresses["node3"], (addresses["node4"], addresses["node2"]))
    async with fleet_of(*targets, endpoints={ELSEWHERE: "http://127.0.0.1:9"}, lock=lock) as fleet:
        await staged(fleet, "node4", pin, relay)
        assert 0 == fleet.sent_bytes
        await staged(fleet, "node2", pin, None)
        assert fleet.sent_bytes > 0


async def test_a_seed_that_dies_holds_nobody_up(bare_lab: Lab) -> None:
    pin, names = elsewhere(bare_lab, "llamacpp"), ["node1", "node2", "node4"]
    addresses = {name: bare_lab.nodes[name].address for name in names}
    relay = Relay("node1", addresses["node1"], tuple(addresses[name] for name in names[1:]))
    targets = [target(bare_lab, name) for name in names]
    with slow_registry(bare_lab, pause_s=0.05) as url:
        async with fleet_of(*targets, endpoints={ELSEWHERE: url}) as fleet:
            nodes = [await fleet.connect(name, 10) for name in names]
            steps = [Steps() for _ in names]
            staging = [
                asyncio.create_task(node.images.stage(pin, PLATFORM, told, relay))
                for node, told in zip(nodes, steps, strict=True)
            ]
            await under_way(staging[1], steps[1])
            bare_lab.nodes["node1"].power_off()
            async with asyncio.timeout(120):
                done = await asyncio.gather(*staging, return_exceptions=True)
    assert isinstance(done[0], NodeError)
    assert done[0].is_transport
    assert all(isinstance(image, LocalImage) and image.usable for image in done[1:]), done


# what breaks


@pytest.mark.parametrize("name", BOTH_STORES)
async def test_a_link_cut_for_twenty_seconds_does_not_end_a_pull(bare_lab: Lab, name: str) -> None:
    pin = elsewhere(bare_lab, "llamacpp")
    with slow_registry(bare_lab, pause_s=0.05) as url:
        async with fleet_of(target(bare_lab, name), endpoints={ELSEWHERE: url}) as fleet:
            node, steps = await fleet.connect(name, 10), Steps()
            staging = asyncio.create_task(node.images.stage(pin, PLATFORM, steps))
            await under_way(staging, steps)
            sent = fleet.sent_bytes
            bare_lab.nodes[name].cut_link()
            await asyncio.sleep(20)
            bare_lab.nodes[name].mend_link()
            async with asyncio.timeout(120):
                with contextlib.suppress(NodeError):  # the common connection, which only names it, may have been lost
                    await staging
            assert sent <= fleet.sent_bytes <= 1.1 * bare_lab.built["llamacpp"].compressed_bytes
            assert await (await fleet.connect(name, 20)).images.present(pin) is not None


@pytest.mark.parametrize("name", BOTH_STORES)
async def test_bits_that_flipped_in_the_vault_are_found_and_fetched_anew(
    bare_lab: Lab, name: str, own_vault: Path
) -> None:
    pin = elsewhere(bare_lab, "tiny")
    async with fleet_of(target(bare_lab, name), endpoints=registry(bare_lab)) as fleet:
        await staged(fleet, name, pin)
    flip_a_bit(own_vault)
    forget(bare_lab, name)
    async with fleet_of(target(bare_lab, name), endpoints={ELSEWHERE: "http://127.0.0.1:9"}) as fleet:
        node = await fleet.connect(name, 10)
        with pytest.raises(NodeError) as damaged:
            await node.images.stage(pin, PLATFORM, Steps())
        assert "127.0.0.1:9" in damaged.value.message
        assert await node.images.present(pin) is None
    async with fleet_of(target(bare_lab, name), endpoints=registry(bare_lab)) as fleet:
        await staged(fleet, name, pin)


def forget(lab: Lab, name: str) -> None:
    """Take every image off a node; the containerd store drops the blobs a little later."""
    node = lab.nodes[name]
    node.remove_images()
    node.docker("image", "prune", "-f")
    content = node.disk / CONTENT
    if node.store == "classic":
        return
    wait_until("the blobs to go", lambda: not content.exists() or not any(content.iterdir()), seconds=30)


def flip_a_bit(vault: Path) -> None:
    """In the middle of the largest blob."""
    blob = max((vault / "blobs" / "sha256").iterdir(), key=lambda path: path.stat().st_size)
    blob.chmod(0o600)
    with blob.open("r+b") as file:
        file.seek(blob.stat().st_size // 2)
        byte = file.read(1)[0]
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([byte ^ 1]))


async def test_a_layer_deleted_behind_the_stores_back(bare_lab: Lab, own_vault: Path) -> None:
    """The store still calls it complete. What is unpacked runs, and a neighbour gets what is missing from elsewhere."""
    pin = elsewhere(bare_lab, "llamacpp")
    targets = [target(bare_lab, name) for name in ("node3", "node4")]
    async with fleet_of(*targets, endpoints=registry(bare_lab)) as fleet:
        await staged(fleet, "node3", pin)
        content = bare_lab.nodes["node3"].disk / CONTENT
        max(content.iterdir(), key=lambda path: path.stat().st_size).unlink()
        assert await (await fleet.connect("node3", 10)).images.present(pin) is not None
        relay = Relay("node3", bare_lab.nodes["node3"].address, (bare_lab.nodes["node4"].address,))
        await staged(fleet, "node4", pin, relay)
        there = await (await fleet.connect("node4", 10)).images.present(pin)
        assert there is not None
        assert there.complete


@pytest.mark.parametrize("name", BOTH_STORES)
async def test_everything_pruned_is_brought_again(bare_lab: Lab, name: str) -> None:
    pin = elsewhere(bare_lab, "tiny")
    async with fleet_of(target(bare_lab, name), endpoints=registry(bare_lab)) as fleet:
        await staged(fleet, name, pin)
        bare_lab.nodes[name].docker("image", "prune", "-f")
        assert await (await fleet.connect(name, 10)).images.present(pin) is not None, "our tag keeps it"
        bare_lab.nodes[name].docker("image", "prune", "-af")
        assert await (await fleet.connect(name, 10)).images.present(pin) is None
        await staged(fleet, name, pin)


@pytest.mark.parametrize("pinned", [False, True], ids=["unlocked", "locked"])
async def test_a_platform_it_is_not_made_for_costs_no_byte(bare_lab: Lab, pinned: bool, own_vault: Path) -> None:
    pin = elsewhere(bare_lab, "llamacpp-arm64")
    async with fleet_of(target(bare_lab, "node1"), endpoints=registry(bare_lab)) as fleet:
        lock = await locked(fleet, pin)
    async with fleet_of(
        target(bare_lab, "node1"), endpoints=registry(bare_lab), lock=lock if pinned else Lock()
    ) as fleet:
        with pytest.raises(NodeError) as refused:
            await staged(fleet, "node1", pin)
        assert ErrorKind.REFUSED is refused.value.kind
        assert "linux/arm64" in refused.value.message
        assert 0 == fleet.sent_bytes
    assert all(size < 100_000 for size in blobs_in(own_vault).values())


@pytest.mark.parametrize("name", BOTH_STORES)
async def test_without_an_ssh_program_the_control_connection_carries(
    bare_lab: Lab, name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pin = elsewhere(bare_lab, "llamacpp")
    async with fleet_of(target(bare_lab, name), endpoints=registry(bare_lab)) as fleet:
        monkeypatch.setenv("PATH", str(tmp_path))
        await staged(fleet, name, pin)
        assert fleet.sent_bytes >= bare_lab.built["llamacpp"].compressed_bytes


async def test_a_vault_that_cannot_be_used_is_told(bare_lab: Lab, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    settings = Images(vault=tmp_path / "file" / "vault")
    async with fleet_of(target(bare_lab, "node1"), endpoints=registry(bare_lab), images=settings) as fleet:
        with pytest.raises(NodeError) as unusable:
            await staged(fleet, "node1", elsewhere(bare_lab, "tiny"))
    assert str(settings.vault) in unusable.value.message


# the last resort


@pytest.mark.parametrize(("source", "peer"), [("node1", "node2"), ("node3", "node4")])
async def test_a_local_build_comes_from_the_node_that_has_it(bare_lab: Lab, source: str, peer: str) -> None:
    bare_lab.preload("tiny", [source])
    built = bare_lab.nodes[source].docker("images", "-q", "--no-trunc")
    pin = ImagePin(built, built, "id")
    async with fleet_of(target(bare_lab, source), target(bare_lab, peer)) as fleet:
        image = await staged(fleet, peer, pin)
    assert built == image.id
    left = bare_lab.nodes[peer].exec(["find", "/tmp", "/root", "-name", "*.tar"]).stdout
    assert "" == left


@pytest.mark.parametrize("peer", ["node2", "node3"])
async def test_without_registry_a_classic_node_gives_its_archive(bare_lab: Lab, peer: str, own_vault: Path) -> None:
    """The digest is lost on the way; the documents in the vault give it back, and no layer moves for that."""
    pin = elsewhere(bare_lab, "llamacpp")
    targets = [target(bare_lab, name) for name in ("node1", peer)]
    async with fleet_of(*targets, endpoints=registry(bare_lab)) as fleet:
        await staged(fleet, "node1", pin)
        lock = await locked(fleet, pin)
    for blob in (own_vault / "blobs" / "sha256").iterdir():
        if blob.stat().st_size > 100_000:
            blob.unlink()
    async with fleet_of(*targets, endpoints={ELSEWHERE: "http://127.0.0.1:9"}, lock=lock) as fleet:
        image = await staged(fleet, peer, pin)
        assert image.usable
        assert fleet.sent_bytes < 20_000


async def test_what_nobody_has_says_why(bare_lab: Lab) -> None:
    pin = elsewhere(bare_lab, "tiny")
    async with fleet_of(target(bare_lab, "node1"), endpoints={ELSEWHERE: "http://127.0.0.1:9"}) as fleet:
        with pytest.raises(NodeError) as nowhere:
            await staged(fleet, "node1", pin)
    assert "http://127.0.0.1:9" in nowhere.value.message
    assert nowhere.value.hint


# the command


def test_a_controller_killed_in_the_middle_of_a_sync(bare_lab: Lab, tmp_path: Path) -> None:
    """Nothing is left on the nodes, nothing half counts, and the second run fetches only the rest."""
    made = desk(bare_lab, tmp_path, ("pair", "pair-a"))
    vault = tmp_path / "vault"
    with slow_registry(bare_lab, pause_s=0.03) as url:
        image = f"{ELSEWHERE}/{bare_lab.images['llamacpp'].partition('/')[2]}"
        made.edit_lane("pair", image=image)
        made.edit(
            "fleet.yaml", lambda spec: spec.update(images={"vault": "vault"}, registries={ELSEWHERE: {"endpoint": url}})
        )
        with made.started("images", "sync", "--yes") as running:
            wait_until("bytes to come", lambda: part_bytes(vault) > 2_000_000, seconds=60)
            running.kill()
            running.wait(10)
        had = part_bytes(vault)
        for node in (bare_lab.nodes["node1"], bare_lab.nodes["node2"]):
            wait_until("the way to close", functools.partial(is_left_alone, node), seconds=30)
            assert "" == node.docker("images", "-q")
        assert had > 2_000_000
    first = made.fleet("images", "sync", "--yes", "--json")
    assert 6 == first.rc, "the registry is gone, and what is there is not whole"
    made.edit(
        "fleet.yaml",
        lambda spec: spec.update(registries={ELSEWHERE: {"endpoint": f"http://{bare_lab.registry.endpoint}"}}),
    )
    second = made.fleet("images", "sync", "--yes", "--json")
    assert 0 == second.rc, second.said
    assert json.loads(second.out)["result"]["sent_bytes"] <= 1.05 * bare_lab.built["llamacpp"].compressed_bytes
    assert "No changes" in made.fleet("images", "sync", "--yes").out


def part_bytes(vault: Path) -> int:
    return sum(path.stat().st_size for path in (vault / "blobs" / "sha256").glob("*.part"))


def is_left_alone(node: Node) -> bool:
    """No way in is open any more, and no program of ours runs."""
    listening = node.exec(["ss", "-Hltn", "sport = :5917"]).stdout
    return not listening and not node.exec(["pgrep", "-f", "python3 -I"], check=False).stdout
