"""Bringing an image: against what operators do by hand, and in bytes. Both image stores in one lab.

The image is `bench.big_image`. node1 (classic) is where it was built; node2 (classic), node3 and node4 (containerd) are
its peers. What is ours is the whole process, from `fleet images sync` to its end.
"""

import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import yaml

from bench import big_image
from bench.measure import Measured, peak_bytes, seconds
from tests.lab import Lab, tunnel
from tests.lab.node import Node
from tests.lab.registry import answers
from tests.lab.shell import Progress, side_by_side, wait_until
from tests.lab.specfile import for_lab, inventory_text

LAB, SUBNET = "benchimg", "10.87.0.0/24"
PEERS = ("node2", "node3", "node4")
ROUNDS = 2
NAMES = (
    "image_3_peers_vs_save_load",
    "image_delta_bytes_vs_missing",
    "image_source_bytes_vs_size",
    "image_present_noop_bytes",
    "image_controller_rss_mb",
)


def measure() -> list[Measured]:
    """What three peers cost, and what changes cost. Needs root on Linux."""
    with world() as found:
        return found.measure()


@contextmanager
def world() -> Iterator["World"]:
    """On a lab of its own."""
    lab = Lab.up(LAB, SUBNET, 4, progress=Progress())
    try:
        with tempfile.TemporaryDirectory() as folder:
            yield World(lab, Path(folder), big_image.push(lab.registry))
    finally:
        lab.down()


@dataclass(frozen=True)
class Ran:
    """One `fleet images sync`: wall time, peak memory of the process, bytes that left the controller's machine.

    `blob_bytes`: how many of them were blobs, by its own account.
    """

    wall_s: float
    rss_bytes: int
    sent_bytes: int
    blob_bytes: int


@dataclass
class World:
    """The lab with the image in its registry, and a spec that wants it."""

    lab: Lab
    folder: Path
    references: dict[str, str]

    def measure(self) -> list[Measured]:
        size = big_image.ensure()[1]["big"].compressed_bytes
        first, by_hand = self.rounds(lambda: self._sync_anew(PEERS), self._by_hand)
        again = self.sync(PEERS, "big")
        delta = self.sync(("node3",), "big-next").sent_bytes
        layer = big_image.top_layer_bytes()
        return [
            Measured(NAMES[0], 0.65, "save, 3 loads over ssh, pulls", wall(first), statistics.median(by_hand)),
            Measured(NAMES[1], 1.05, "the changed layer", delta, layer, "MB"),
            Measured(NAMES[2], 1.05, "the image", max(run.sent_bytes for run in first), size, "MB"),
            Measured(NAMES[3], 0.0, "bytes of blobs", again.blob_bytes, 1, "B"),
            Measured(NAMES[4], 1.0, "150 MB", max(run.rss_bytes for run in first), 150e6, "MB"),
        ]

    def rounds(self, ours: Callable[[], Ran], other: Callable[[], float]) -> tuple[list[Ran], list[float]]:
        pairs = [(ours(), other()) for _ in range(ROUNDS)]
        return [one for one, _ in pairs], [two for _, two in pairs]

    # ours

    def _sync_anew(self, nodes: Sequence[str]) -> Ran:
        """The first time: nothing in the vault, nothing on the nodes."""
        shutil.rmtree(self._vault, ignore_errors=True)
        self._empty(nodes)
        return self.sync(nodes, "big")

    def sync_filled(self, node: str) -> Ran:
        self._empty((node,))
        return self.sync((node,), "big")

    def sync(self, nodes: Sequence[str], image: str) -> Ran:
        spec = self._spec(nodes, image)
        fleet = str(Path(sys.executable).with_name("fleet"))
        before = _sent(self.lab)
        words = [fleet, "images", "sync", "--yes", "--json", "--file", str(spec)]
        began_s = time.perf_counter()
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
            rss_bytes = _peak(process)
            output = process.stdout.read() if process.stdout else ""
        assert process.returncode == 0, output
        wall_s = time.perf_counter() - began_s
        return Ran(wall_s, rss_bytes, _sent(self.lab) - before, _blob_bytes(output))

    @property
    def _vault(self) -> Path:
        return self.folder / "vault"

    def _spec(self, nodes: Sequence[str], image: str) -> Path:
        inventory = yaml.safe_load(inventory_text(for_lab(self.lab)))
        lane = {"engine": "custom", "image": self.references[image], "nodes": len(nodes), "argv": ["true"]}
        spec = {
            "fleet": "bench",
            "images": {"vault": str(self._vault)},
            "nodes": inventory["nodes"],
            "clusters": {"peers": {"nodes": list(nodes), "interface": "f0"}},
            "lanes": {"big": lane},
            "placements": [{"lane": "big", "cluster": "peers"}],
        }
        path = self.folder / "fleet.yaml"
        path.write_text(yaml.safe_dump(spec))
        return path

    # by hand

    def _by_hand(self) -> float:
        """Save once, three loads at once, and a pull by digest on each to repair what the load lost."""
        reference = self.references["big"]
        node1, peers = self.lab.nodes["node1"], [self.lab.nodes[name] for name in PEERS]
        self._empty(PEERS)
        if reference.rpartition("@")[2] not in node1.docker("images", "--digests"):
            with tunnel.remote_forward(self.lab.ssh_config, node1, self.lab.registry.port):
                node1.docker("pull", "-q", reference)
            node1.docker("tag", reference, "big:1")
        archive = self.folder / "big.tar"
        with ExitStack() as doors:
            for peer in peers:
                doors.enter_context(tunnel.remote_forward(self.lab.ssh_config, peer, self.lab.registry.port))
            return seconds(partial(self._save_and_load, archive, reference))

    def _save_and_load(self, archive: Path, reference: str) -> None:
        with archive.open("wb") as saved:
            subprocess.run([*self._ssh("node1"), "docker save big:1"], stdout=saved, check=True)
        side_by_side(partial(self._load, archive, peer) for peer in PEERS)
        side_by_side(partial(self.lab.nodes[peer].docker, "pull", "-q", reference) for peer in PEERS)
        archive.unlink()

    def _load(self, archive: Path, peer: str) -> None:
        with archive.open("rb") as saved:
            subprocess.run([*self._ssh(peer), "docker load -q"], stdin=saved, stdout=subprocess.DEVNULL, check=True)

    def _ssh(self, node: str) -> list[str]:
        return ["ssh", "-F", str(self.lab.ssh_config), node]

    def bare_pull(self, name: str) -> float:
        """From a registry that the node reaches by itself, over the bridge."""
        node = self.lab.nodes[name]
        self._empty((name,))
        path = self.references["big"].partition("/")[2]
        with _on_the_bridge(self.lab, node) as registry:
            return seconds(lambda: node.docker("pull", "-q", f"{registry}/{path}"))

    def _empty(self, names: Sequence[str]) -> None:
        """Neither images nor what a pull that was broken off has left."""
        for name in names:
            self.lab.nodes[name].remove_images()
            self.lab.nodes[name].docker("image", "prune", "-f")


@contextmanager
def _on_the_bridge(lab: Lab, node: Node) -> Iterator[str]:
    """A registry with the same storage at the bridge's address; the daemon is told that it speaks plain HTTP there."""
    endpoint = f"{lab.config.gateway}:{lab.registry.port}"
    config = lab.registry.folder / "bridge.yml"
    config.write_text(json.dumps(lab.registry.config(endpoint)))
    settings = node.disk / "etc/docker/daemon.json"
    before = settings.read_text()
    settings.write_text(json.dumps({**json.loads(before), "insecure-registries": [endpoint]}))
    node.exec(["pkill", "-HUP", "-x", "dockerd"])
    wait_until("the daemon to read its settings", lambda: endpoint in node.docker("info"), seconds=10)
    with subprocess.Popen(
        ["docker-registry", "serve", str(config)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as registry:
        try:
            wait_until("the registry on the bridge", lambda: answers(endpoint), seconds=10)
            yield endpoint
        finally:
            registry.terminate()
            settings.write_text(before)
            node.exec(["pkill", "-HUP", "-x", "dockerd"])


def _peak(process: "subprocess.Popen[str]") -> int:
    """Peak memory of a process, watched until it ends."""
    peak = 0
    while process.poll() is None:
        with suppress(OSError):
            peak = peak_bytes(process.pid) or peak
        time.sleep(0.05)
    return peak


def _blob_bytes(output: str) -> int:
    result = json.loads(output)["result"]
    return int(result["sent_bytes"]) if result else 0


def wall(runs: list[Ran]) -> float:
    return statistics.median(run.wall_s for run in runs)


def _sent(lab: Lab) -> int:
    """Bytes that left this machine for the nodes; what they send each other is not in it."""
    return int(Path(f"/sys/class/net/{lab.config.bridge}/statistics/tx_bytes").read_text())
