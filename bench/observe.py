"""What reading 200 nodes costs the controller: CPU time beside bare SSH connections, and memory."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import asyncssh

from bench.measure import Measured

NAMES = ("observe_200_nodes_cpu_vs_bare_ssh", "controller_rss_200_nodes_mb")
NODES = 200
ROUNDS = 8


def measure() -> list[Measured]:
    """The nodes are played by another process, so that only the controller's own work counts."""
    with tempfile.TemporaryDirectory() as made, nodes(Path(made), NODES):
        folder = Path(made)
        pairs = [(_measured("fleet", folder), _measured("bare", folder)) for _ in range(ROUNDS)]
    ours_s, bare_s = (min(found[which]["cpu_s"] for found in pairs) for which in (0, 1))  # noise only adds CPU time
    rss_bytes = max(ours["rss_bytes"] for ours, _ in pairs)
    return [
        Measured(NAMES[0], 1.3, "200 connections of asyncssh, one exec each", ours_s, bare_s, "ms"),
        Measured(NAMES[1], 1.0, "150 MB", rss_bytes, 150e6, "MB"),
    ]


@contextmanager
def nodes(folder: Path, count: int) -> Iterator[None]:
    """Played nodes while the block lasts, and a spec of them in `folder`."""
    for name in ("host", "client"):
        key = asyncssh.generate_private_key("ssh-ed25519")
        key.write_private_key(folder / name)
        key.write_public_key(folder / f"{name}.pub")
    words = [sys.executable, "-m", "bench.played_nodes", str(count), str(folder)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        ports = json.loads(server.stdout.readline())
        (folder / "ports.json").write_text(json.dumps(ports), encoding="utf-8")
        (folder / "fleet.yaml").write_text(spec_text(folder, ports), encoding="utf-8")
        try:
            yield
        finally:
            server.stdin.close()


def spec_text(folder: Path, ports: list[int]) -> str:
    """The nodes, each with its pinned host key; no lanes."""
    key = (folder / "host.pub").read_text(encoding="utf-8").strip()
    lines = ["fleet: lab", "nodes:"]
    for number, port in enumerate(ports):
        lines.append(
            f"  n{number}: {{ssh: {{host: 127.0.0.1, port: {port}, user: root, identity_file: {folder / 'client'}, "
            f'host_key: "{key}"}}, platform: linux/amd64}}'
        )
    return "\n".join(lines) + "\n"


def _measured(what: str, folder: Path) -> dict[str, float]:
    words = [sys.executable, "-m", "bench.observing", what, str(folder)]
    done = subprocess.run(words, stdout=subprocess.PIPE, check=True, text=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found
