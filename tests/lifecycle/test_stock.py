"""`fleet images` on the simulated fleet: what is seen, what goes, what stays, and what happens when it goes wrong."""

import functools
import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reconciler.cli.main import run
from reconciler.cli.wiring import Wiring
from reconciler.core.desired import ContainerSpec
from reconciler.core.garbage import Collected, Ending, GcPlan, Stock, gc_plan
from reconciler.core.lock import Lock, LockedImage, LockedLayer, LockedPlatform
from reconciler.fleet import Fleet
from reconciler.images import lockfile
from reconciler.images.vault import Vault
from reconciler.nodes.errors import ErrorKind
from reconciler.stock import collect, stock
from reconciler.testing import Fault, SimImage, SimulatedFleet, run_simulated
from reconciler.testing.images import sha256
from tests.lifecycle.harness import Story

Command = Callable[..., tuple[int, str, str]]

REPO = "ghcr.io/example/llamacpp"
OLD, OLDER = (SimImage(f"{REPO}@{sha256(name)}", sha256(name)) for name in ("old", "older"))
OTHER = SimImage.named("ghcr.io/example/other")
DAYS_10 = 10 * 86400


class Shop(Story):
    """A story whose nodes have had other images before, and whose vault is in its folder."""

    def __post_init__(self) -> None:
        super().__post_init__()
        configs = [node.config for node in self.nodes.nodes]
        self.nodes = SimulatedFleet(configs, [self.image, OLD, OLDER, OTHER], seed=self.seed)
        self.settings("retain: 0")

    def settings(self, text: str) -> None:
        """The section images."""
        (self.folder / "images.yaml").write_text(f"images: {{vault: vault, {text}}}\n")
        main = self.folder / "fleet.yaml"
        text = main.read_text().replace("images:\n  vault: vault\n", "")
        if "images.yaml" not in text:
            main.write_text(text.replace("- inventory.yaml", "- images.yaml\n- inventory.yaml"))

    @property
    def vault(self) -> Vault:
        return Vault(self.folder / "vault")

    def digests(self, node: str) -> set[str]:
        """The images a node has."""
        return {digest for image in self.nodes.node(node).facts().images for digest in image.digests}

    def stock(self) -> Stock:
        async def work(fleet: Fleet) -> Stock:
            return await stock(fleet, await fleet.observe())

        found: Stock = self.run(work)
        return found

    def collect(self, plan: GcPlan) -> Collected:
        async def work(fleet: Fleet) -> Collected:
            return await collect(fleet, plan)

        done: Collected = self.run(work)
        return done

    def put(self, document: bytes, age_s: float = DAYS_10) -> str:
        """A blob of the vault that is so old; its digest."""
        digest = f"sha256:{hashlib.sha256(document).hexdigest()}"
        path = self.folder / "vault" / "blobs" / "sha256" / digest.removeprefix("sha256:")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(document)
        then = path.stat().st_mtime - age_s
        os.utime(path, (then, then))
        return digest

    def put_image(self, name: str) -> tuple[str, set[str]]:
        """An image in the vault, old enough to go; its top digest and all its blobs."""
        config, layer = self.put(f"config {name}".encode()), self.put(f"layer {name}".encode())
        manifest = self.put(json.dumps({"config": named(config), "layers": [named(layer)]}).encode())
        top = self.put(json.dumps({"manifests": [named(manifest), named(sha256("not here"))]}).encode())
        return top, {top, manifest, config, layer}

    def blobs(self) -> set[str]:
        return {digest for digest, *_ in self.vault.digests()}


def named(digest: str) -> dict[str, object]:
    return {"digest": digest, "size": 1}


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path)


@pytest.fixture
def fleet(shop: Shop, capsys: pytest.CaptureFixture[str]) -> Command:
    """`fleet WORDS --file SPEC` in this process: exit code, standard output, standard error."""
    wiring = Wiring(lambda spec: shop.nodes, functools.partial(run_simulated, seed=shop.seed))

    def command(*words: str) -> tuple[int, str, str]:
        code = run([*words, "--file", str(shop.folder / "fleet.yaml")], wiring)
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return command


def parsed(output: str) -> Any:
    return json.loads(output)


def load(shop: Shop, *images: SimImage, node: str = "node1") -> None:
    for image in images:
        shop.nodes.node(node).load_image(image.digest)


def test_apply_then_ls_shows_every_image_pinned_and_gc_has_nothing_to_do(fleet: Command, shop: Shop) -> None:
    fleet("apply", "--yes")
    code, output, _ = fleet("images", "ls", "--json")
    assert (0, {"pinned"}) == (code, {item["standing"] for item in parsed(output)["images"]})
    before = shop.nodes.mutations
    code, output, _ = fleet("images", "gc")
    assert (0, before) == (code, shop.nodes.mutations)
    assert "nothing to collect" in output


def test_gc_removes_what_the_plan_says_and_a_second_one_has_nothing_to_do(fleet: Command, shop: Shop) -> None:
    fleet("apply", "--yes")
    load(shop, OLD, OLDER)
    load(shop, OLD, node="node3")
    code, output, _ = fleet("images", "gc", "--yes")
    assert 0 == code
    assert "3 images to remove on 2 nodes" in output
    assert "images: 3 removed" in output
    assert [{shop.image.digest}] * 2 == [shop.digests("node1"), shop.digests("node3")]
    assert {"pair": 2, "solo": 1} == shop.running_lanes()
    assert "nothing to collect" in fleet("images", "gc")[1]


def test_the_newest_unused_image_is_kept_for_a_rollback(fleet: Command, shop: Shop) -> None:
    shop.settings("retain: 1")
    load(shop, OLD, OTHER)
    fleet("images", "gc", "--yes")
    assert {OLD.digest, OTHER.digest} == shop.digests("node1")


def test_what_the_spec_protects_stays(fleet: Command, shop: Shop) -> None:
    shop.settings('retain: 0, protect: ["ghcr.io/example/oth*"]')
    load(shop, OLD, OTHER)
    fleet("images", "gc", "--yes")
    assert {OTHER.digest} == shop.digests("node1")


def test_what_others_brought_stays(fleet: Command, shop: Shop) -> None:
    shop.nodes.node("node1").load_image(OLD.digest, attached=False)
    assert "foreign" in fleet("images", "ls")[1]
    fleet("images", "gc", "--yes")
    assert 1 == len(shop.nodes.node("node1").facts().images)


def test_gc_without_a_terminal_and_without_yes_does_nothing(
    fleet: Command, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: False, raising=False)
    load(shop, OLD)
    code, output, error = fleet("images", "gc")
    assert (1, ()) == (code, shop.nodes.mutations)
    assert output.endswith("Nothing was changed.\n")
    assert "--yes" in error


def test_gc_json_has_the_plan_and_what_came_of_it(fleet: Command, shop: Shop) -> None:
    load(shop, OLD)
    code, output, _ = fleet("images", "gc", "--yes", "--json")
    report = parsed(output)
    assert (0, 0) == (code, report["exit"])
    assert [("node1", "removed")] == [(item["where"], item["ending"]) for item in report["result"]["removals"]]
    assert ["fleet.images-gc/1", 1] == [report["plan"]["schema"], len(report["plan"]["removals"])]


def test_a_node_that_cannot_be_read_is_told_and_not_touched_and_the_others_are(fleet: Command, shop: Shop) -> None:
    load(shop, OLD)
    load(shop, OLD, node="node3")
    shop.nodes.node("node3").power_off()
    code, output, _ = fleet("images", "ls")
    assert 4 == code
    assert "! node3: node3 refuses connections" in output
    assert 0 == fleet("images", "ls", "--node", "node1")[0]
    assert 4 == fleet("images", "gc", "--yes")[0]
    assert [set(), {OLD.digest}] == [shop.digests("node1"), shop.digests("node3")]


def test_a_container_that_came_since_the_plan_keeps_its_image(shop: Shop) -> None:
    load(shop, OLD)
    plan = gc_plan(shop.stock())
    node = shop.nodes.node("node1")
    used = next(image.id for image in node.facts().images)
    node.runtime.create("mine", ContainerSpec(OLD.pin, ("sleep",)), OLD, used, {}, {})
    done = shop.collect(plan)
    assert [(Ending.LEFT, "it is used now: container mine")] == [(item.ending, item.detail) for item in done.removals]
    assert {OLD.digest} == shop.digests("node1")


def test_an_image_that_went_since_the_plan_is_gone(shop: Shop) -> None:
    load(shop, OLD)
    plan = gc_plan(shop.stock())
    shop.nodes.node("node1").remove_image(OLD.digest)
    assert [Ending.GONE] == [item.ending for item in shop.collect(plan).removals]


def test_an_image_that_a_lane_wants_since_the_plan_is_left(shop: Shop) -> None:
    load(shop, OLD)
    plan = gc_plan(shop.stock())
    shop.edit(shop.image.digest, OLD.digest)
    assert [Ending.LEFT] == [item.ending for item in shop.collect(plan).removals]


def test_a_removal_that_fails_is_told_with_its_node_and_the_rest_goes_on(fleet: Command, shop: Shop) -> None:
    load(shop, OLD, OLDER)
    load(shop, OLD, node="node3")
    shop.nodes.inject(Fault.fail("node1", "remove-image", ErrorKind.REFUSED))
    code, output, _ = fleet("images", "gc", "--yes")
    assert 6 == code
    assert "injected: refused" in next(line for line in output.splitlines() if line.startswith("node1: NOT removed "))
    assert "images: 2 removed, 1 failed" in output
    assert set() == shop.digests("node3")


def test_a_node_that_goes_away_in_the_middle_is_told_and_the_others_go_on(fleet: Command, shop: Shop) -> None:
    load(shop, OLD)
    load(shop, OLD, node="node3")
    shop.nodes.inject(Fault.lose_reply("node1", "remove-image"))
    code, output, _ = fleet("images", "gc", "--yes")
    assert 4 == code
    assert "! node1: " in output
    assert set() == shop.digests("node3")


def test_sync_brings_images_and_touches_no_lane(fleet: Command, shop: Shop) -> None:
    code, output, _ = fleet("images", "sync", "--cluster", "pair-a", "--yes")
    assert (0, {"stage"}) == (code, {call.operation for call in shop.nodes.mutations}), output
    assert [{shop.image.digest}] * 2 == [shop.digests("node1"), shop.digests("node2")]
    assert set() == shop.digests("node3")
    assert 0 == fleet("images", "sync", "--yes")[0]
    assert {shop.image.digest} == shop.digests("node3")
    before = shop.nodes.mutations
    assert (0, before) == (fleet("images", "sync")[0], shop.nodes.mutations)


# the vault


def test_the_vault_keeps_what_a_node_or_another_fleet_needs_and_loses_the_rest(fleet: Command, shop: Shop) -> None:
    needed, needed_blobs = shop.put_image("needed")
    others, others_blobs = shop.put_image("others")
    free, _ = shop.put_image("free")
    young = shop.put(b"young", age_s=60)
    shop.put(b"lost")
    for owner, top in (("lab", needed), ("other", others), ("lab", free)):
        shop.vault.keep(owner, top)
    shop.edit(shop.image.digest, needed)
    code, output, _ = fleet("images", "gc", "--yes")
    assert 0 == code, output
    assert needed_blobs | others_blobs | {young} == shop.blobs()
    assert {"lab": [needed], "other": [others]} == {owner: list(tops) for owner, tops in shop.vault.roots().items()}
    assert "nothing to collect" in fleet("images", "gc")[1]


def test_half_transfers_older_than_a_day_go(fleet: Command, shop: Shop) -> None:
    names = (sha256(name).removeprefix("sha256:") for name in ("old", "young"))
    old, young = (shop.folder / "vault" / "blobs" / "sha256" / f"{name}.part" for name in names)
    shop.put(b"young", age_s=0)
    for path in (old, young):
        path.write_bytes(b"half")
    os.utime(old, (0, 0))
    assert 0 == fleet("images", "gc", "--yes")[0]
    assert (False, True) == (old.exists(), young.exists())


def test_a_protected_vault_is_not_touched(fleet: Command, shop: Shop) -> None:
    lost = shop.put(b"lost")
    shop.settings(f"retain: 0, protect: ['{shop.folder.resolve()}']")
    code, output, _ = fleet("images", "gc", "--yes")
    assert (0, {lost}) == (code, shop.blobs())
    assert "protected" in output


def test_a_damaged_manifest_keeps_everything_and_is_told(fleet: Command, shop: Shop) -> None:
    top, blobs = shop.put_image("needed")
    shop.vault.keep("lab", top)
    shop.edit(shop.image.digest, top)
    lost = shop.put(b"lost")
    path = shop.folder / "vault" / "blobs" / "sha256" / top.removeprefix("sha256:")
    path.write_bytes(path.read_bytes()[:-1] + b"]")
    code, output, _ = fleet("images", "gc", "--yes")
    assert (0, True) == (code, lost in shop.blobs())
    assert "is damaged" in output
    assert blobs == shop.blobs() - {lost}


def test_what_the_lock_tells_of_a_damaged_image_keeps_its_layers_and_nothing_else(fleet: Command, shop: Shop) -> None:
    layer, config = shop.put(b"layer"), shop.put(b"config")
    manifest, top, lost = shop.put(b"damaged manifest"), shop.put(b"damaged index"), shop.put(b"lost")
    for digest in (manifest, top):
        shop.vault.path(digest).write_bytes(b"something else")
        os.utime(shop.vault.path(digest), (0, 0))
    shop.vault.keep("lab", top)
    shop.edit(shop.image.digest, top)
    platform = LockedPlatform("linux/amd64", manifest, 16, config, 6, (LockedLayer(layer, 5, sha256("content")),))
    lockfile.write(shop.folder, Lock((LockedImage(REPO, top, "digest", (platform,), 13),)))
    assert 0 == fleet("images", "gc", "--yes")[0]
    assert {layer, config, manifest, top} == shop.blobs()
    assert lost not in shop.blobs()


def test_a_vault_that_cannot_be_read_is_an_error_with_its_place(fleet: Command, shop: Shop) -> None:
    (shop.folder / "vault").mkdir()
    (shop.folder / "vault" / "roots").mkdir()
    (shop.folder / "vault" / "roots" / "lab").write_text("no folder")
    code, _, error = fleet("images", "ls")
    assert 1 == code
    assert str(shop.folder / "vault") in error


def test_only_the_vault_or_only_the_nodes(fleet: Command, shop: Shop) -> None:
    shop.put(b"lost")
    load(shop, OLD)
    assert 0 == fleet("images", "gc", "--yes", "--only", "vault")[0]
    assert (set(), {OLD.digest}) == (shop.blobs(), shop.digests("node1"))
    lost = shop.put(b"lost")
    assert 0 == fleet("images", "gc", "--yes", "--only", "nodes")[0]
    assert ({lost}, set()) == (shop.blobs(), shop.digests("node1"))
