"""The only way from a node to the registry: a port of the controller, lent to the node over SSH for a while."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .node import Node
from .shell import wait_until


@contextmanager
def remote_forward(ssh_config: Path, node: Node, port: int) -> Iterator[None]:
    """Hold the forward open, and cut it at the end: daemons keep idle connections that ssh would wait 30 s for."""
    argv = ["ssh", "-F", str(ssh_config), "-N", "-o", "ExitOnForwardFailure=yes"]
    argv += ["-R", f"127.0.0.1:{port}:127.0.0.1:{port}", node.name]
    with subprocess.Popen(argv, stdin=subprocess.DEVNULL) as ssh:
        try:
            wait_until(f"the forward to {node.name}", lambda: listens(node, port), seconds=20)
            yield
        finally:
            ssh.terminate()


def listens(node: Node, port: int) -> bool:
    return bool(node.exec(["ss", "-Hltn", f"sport = :{port}"]).stdout.strip())
