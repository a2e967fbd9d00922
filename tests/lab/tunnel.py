"""The only way from a node to the registry: a port of the controller, lent to the node over SSH for a while."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .node import Node
from .shell import LabError, tail, wait_until


@contextmanager
def remote_forward(ssh_config: Path, node: Node, port: int) -> Iterator[None]:
    """Hold the forward open, and cut it at the end: daemons keep idle connections that ssh would wait 30 s for."""
    argv = ["ssh", "-F", str(ssh_config), "-N", "-o", "ExitOnForwardFailure=yes"]
    argv += ["-R", f"127.0.0.1:{port}:127.0.0.1:{port}", node.name]
    with subprocess.Popen(argv, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as ssh:
        try:
            wait_until(f"the forward to {node.name}", lambda: stands(ssh, node, port), seconds=20)
            yield
        finally:
            ssh.terminate()


def stands(ssh: "subprocess.Popen[str]", node: Node, port: int) -> bool:
    if ssh.poll() is not None:
        raise LabError(f"no forward to {node.name}\n{tail(ssh.stderr.read() if ssh.stderr else '')}")
    return listens(node, port)


def listens(node: Node, port: int) -> bool:
    return bool(node.exec(["ss", "-Hltn", f"sport = :{port}"]).stdout.strip())
