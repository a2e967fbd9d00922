"""`fleet models` on real disks, with a real rsync between the nodes.

What is looked at is a folder of a Hugging Face cache; what `apply` copies is the file that the lane then serves.
"""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.core.models import PARTIAL

from . import Lab, hub_cache
from .fleet_cli import Desk, desk, names, read_until
from .hub_cache import SHARDS, SNAPSHOT, HubModel
from .node import Node
from .shell import wait_until

pytestmark = pytest.mark.lab

READER = ("reader", "pair-a")
PAIR = ("pair", "pair-a")
SMALL = HubModel.made(300_000)
BIG = HubModel.made(20 * 2**20)
MOUNTS = [{"source": "{paths.models}", "target": "/srv/models"}]


@pytest.fixture
def made(clean_lab: Lab, tmp_path: Path) -> Iterator[Desk]:
    """A lane on node1 that reads the model `hub`, which is nowhere yet."""
    made = desk(clean_lab, tmp_path, READER)
    pin(made, SMALL)
    made.custom("reader", "sleep 1000", model="hub", mounts=MOUNTS)
    yield made
    for node in clean_lab.nodes.values():
        hub_cache.remove(node)


def pin(made: Desk, model: HubModel) -> None:
    """Want this very model."""
    found = {"path": f"{{paths.models}}/{SNAPSHOT}", "revision": hub_cache.COMMIT}
    verify = {name: model.digest(name) for name in ("config.json", SHARDS[0])}
    made.edit("lanes.yaml", lambda content: content["models"].update(hub={**found, "verify": verify}))


def pair(made: Desk) -> tuple[Node, Node]:
    """The node of the lane, and its neighbour."""
    return made.lab.nodes["node1"], made.lab.nodes["node2"]


def leftovers(node: Node) -> list[str]:
    """What a copy could leave: rsync processes, folders with a password, files that are not whole."""
    processes = node.exec(["ps", "-eo", "args"]).stdout.splitlines()
    found = [line for line in processes if line.startswith("rsync")]
    found += [str(path) for path in (node.disk / "tmp").glob("tmp.*")]
    return found + [str(path) for path in (node.disk / "srv/models").rglob("*.fleet-partial*")]


def nothing_is_left(*nodes: Node) -> None:
    """What gave a model ends when its node's sshd has noticed that the connection is over: soon, and by itself."""

    def found() -> list[str]:
        return [item for node in nodes for item in leftovers(node)]

    wait_until("nothing left of a copy", lambda: not found(), seconds=10, detail=lambda: "\n".join(found()))


def bytes_arrive(node: Node) -> bool:
    """Whether a copy to an empty disk has begun: before that, a full disk is seen and nothing is sent."""
    found = node.exec(["find", "/srv/models", "-type", "f", "-size", "+8k"], check=False)
    return bool(found.stdout.strip())


def test_ls_and_verify_tell_what_is_whole_broken_and_flipped(made: Desk) -> None:
    here, there = pair(made)
    for node in (here, there):
        SMALL.place(node)
    (hub_cache.place_on(there) / SHARDS[1]).unlink()
    (hub_cache.place_on(there) / SHARDS[0]).resolve().unlink()
    listed = made.fleet("models", "ls", "hub")
    assert listed.rc == 0, listed.said
    standings = {tuple(line.split()[1:3]) for line in listed.out.splitlines()[1:]}
    assert {("node1", "whole"), ("node2", "broken"), ("node3", "absent"), ("node4", "absent")} == standings
    proved = made.fleet("models", "verify", "hub", "--node", "node1")
    assert (0, "hub on node1: 4 files") == (proved.rc, proved.out[: len("hub on node1: 4 files")]), proved.said
    with (hub_cache.place_on(here) / SHARDS[1]).resolve().open("r+b") as file:
        file.seek(1000)
        file.write(bytes([file.read(1)[0] ^ 1]))
    flipped = made.fleet("models", "verify", "hub", "--node", "node1")
    assert flipped.rc == 2, flipped.said
    assert f"{SHARDS[1]} has sha256:" in flipped.out
    SMALL.place(there)
    (hub_cache.place_on(here) / SHARDS[1]).resolve().unlink()
    (hub_cache.place_on(here) / SHARDS[1]).unlink()
    filled = made.fleet("models", "sync", "hub", "--yes")
    assert filled.rc == 0, filled.said
    assert SMALL.is_on(here)
    nothing_is_left(here, there)


def test_sync_copies_a_hub_cache_directly_and_again_there_is_nothing_to_do(made: Desk) -> None:
    here, there = pair(made)
    SMALL.place(there)
    refused = made.fleet("plan")
    assert refused.rc == 3, refused.said
    assert "node2 has it: `fleet models sync hub` copies it" in refused.said
    synced = made.fleet("models", "sync", "hub", "--yes")
    assert synced.rc == 0, synced.said
    assert "from node2" in synced.out
    assert "through the controller" not in synced.out
    assert SMALL.is_on(here)
    nothing_is_left(here, there)
    assert "No changes." in made.fleet("models", "sync", "--yes").out


def test_sync_goes_through_the_controller_where_the_direct_way_is_closed(made: Desk) -> None:
    here, there = pair(made)
    SMALL.place(there)
    closed = ["-p", "tcp", "-s", here.address, "-j", "REJECT", "--reject-with", "tcp-reset"]
    there.exec(["iptables", "-I", "INPUT", *closed])
    try:
        synced = made.fleet("models", "sync", "hub", "--yes")
    finally:
        there.exec(["iptables", "-D", "INPUT", *closed])
    assert synced.rc == 0, synced.said
    assert "through the controller" in synced.out
    assert SMALL.is_on(here)
    nothing_is_left(here, there)


def test_after_a_killed_controller_only_the_rest_moves(made: Desk) -> None:
    here, there = pair(made)
    pin(made, BIG)
    BIG.place(there)
    there.delay(10)
    blobs = here.disk / "srv/models" / hub_cache.REPOSITORY / "blobs"
    with made.started("models", "sync", "hub", "--yes") as process:
        wait_until("the middle of the second shard", lambda: _is_in_the_second(blobs), seconds=60)
        process.send_signal(signal.SIGKILL)
        process.wait()
    wait_until("rsync to end", lambda: not _rsyncs(here) and not _rsyncs(there), seconds=20)
    there.delay(0)
    nothing_is_left(there)
    listed = made.fleet("models", "ls", "hub", "--node", "node1")
    assert "whole" not in listed.out
    whole = {path: path.stat().st_ino for path in blobs.iterdir() if path.name in _digests(BIG)}
    assert 1 == len(whole), "the copy went on without its controller"
    assert [True] == [path.stat().st_size > 0 for path in (blobs / PARTIAL).iterdir()], "what came is kept"
    synced = made.fleet("models", "sync", "hub", "--yes")
    assert synced.rc == 0, synced.said
    assert BIG.is_on(here)
    assert whole == {path: path.stat().st_ino for path in whole}, "what was there did not come again"
    nothing_is_left(here, there)


def _is_in_the_second(blobs: Path) -> bool:
    """One is whole, and of the other something came: rsync has it under a hidden name."""
    return any((blobs / name).exists() for name in _digests(BIG)) and any(map(_size, blobs.glob(".*.*")))


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:  # it got its name meanwhile
        return 0


def _digests(model: HubModel) -> set[str]:
    """The names of the big blobs."""
    return {model.digest(name).removeprefix("sha256:") for name in SHARDS}


def _rsyncs(node: Node) -> bool:
    return any(line.startswith("rsync") for line in node.exec(["ps", "-eo", "args"]).stdout.splitlines())


def test_a_full_disk_and_a_missing_rsync_are_refused_with_what_to_do(made: Desk) -> None:
    here, there = pair(made)
    SMALL.place(there)
    here.exec(["mount", "-t", "tmpfs", "-o", "size=100k", "tmpfs", "/srv/models"])
    try:
        full = made.fleet("models", "sync", "hub", "--yes")
    finally:
        here.exec(["umount", "/srv/models"])
    assert full.rc == 3, full.said
    assert "node1 has 100.0 KiB free, and needs" in full.said
    assert_a_disk_that_fills_meanwhile_leaves_nothing_that_counts(made)
    here.exec(["mount", "--bind", "/dev/null", "/usr/bin/rsync"])
    try:
        bare = made.fleet("models", "sync", "hub", "--yes")
    finally:
        here.exec(["umount", "/usr/bin/rsync"])
    assert bare.rc == 3, bare.said
    assert "install rsync on node1" in bare.said


def assert_a_disk_that_fills_meanwhile_leaves_nothing_that_counts(made: Desk) -> None:
    here, there = pair(made)
    pin(made, BIG)
    BIG.place(there)
    there.delay(100)  # or all of it is there before the disk is full
    here.exec(["mount", "-t", "tmpfs", "-o", "size=48m", "tmpfs", "/srv/models"])
    try:
        with made.started("models", "sync", "hub", "--yes") as process:
            read_until(process, "copying model")
            wait_until("the first bytes on node1", lambda: bytes_arrive(here), seconds=30)
            here.exec(["fallocate", "-l", "40M", "/srv/models/ballast"])
            said, _ = process.communicate(timeout=60)
        listed = made.fleet("models", "ls", "hub", "--node", "node1")
    finally:
        there.delay(0)
        here.exec(["umount", "/srv/models"])
    assert process.returncode == 6, said
    assert "No space left" in said
    assert "then `fleet models sync`" in said
    assert "absent" in listed.out
    pin(made, SMALL)
    SMALL.place(there)


def test_apply_fetches_a_model_with_sync_and_refuses_without(made: Desk) -> None:
    here, there = pair(made)
    made.place(PAIR)
    model = here.disk / "srv/models/good.gguf"
    model.unlink()
    refused = made.fleet("apply", "--yes")
    assert refused.rc == 3, refused.said
    assert "model bigram is not on node1" in refused.said
    assert "node2 has it: `fleet models sync bigram` copies it" in refused.said
    made.edit("lanes.yaml", lambda content: content["models"]["bigram"].update(sync=True))
    made.apply()
    assert (there.disk / "srv/models/good.gguf").read_bytes() == model.read_bytes()
    assert {"node1": ["fleet-pair-r0-v1"], "node2": ["fleet-pair-r1-v1"]} == names(made.lab)
    nothing_is_left(here, there)
