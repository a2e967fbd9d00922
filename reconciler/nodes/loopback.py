"""What is offered on a node's loopback stays there, and a port that cannot be had is told."""

from collections.abc import Iterable

from reconciler.core.observed import Listener
from reconciler.nodes.endpoints import is_loopback
from reconciler.nodes.errors import ErrorKind, NodeError
from reconciler.nodes.targets import SshTarget


def insist_on_loopback(target: SshTarget, port: int, listeners: Iterable[Listener]) -> None:
    """Raise `NodeError` of kind DENIED when the network could pull from this port of the node, too.

    With `GatewayPorts yes`, sshd listens on every address, whatever was asked.
    """
    addresses = [item.address for item in listeners if item.port == port]
    if all(is_loopback(address) for address in addresses):
        return
    message = f"sshd on {target.host} offers port {port} on {', '.join(addresses)} and not on loopback alone"
    hint = "set `GatewayPorts no` (or clientspecified) in its sshd_config"
    raise NodeError(ErrorKind.DENIED, message, hint)


def taken(target: SshTarget, port: int) -> NodeError:
    """The error for a port of the node's loopback that sshd cannot listen on. It does not say why."""
    hint = (
        "another run that brings images there has it: wait for its end; else `ss -ltnp` there shows who listens on it, "
        "or its sshd_config has `AllowTcpForwarding no`"
    )
    place = f"127.0.0.1:{port} on {target.host}"
    return NodeError(ErrorKind.CONFLICT, f"sshd cannot listen on {place} to bring images: it is taken", hint)


def forbidden(target: SshTarget) -> NodeError:
    """The error for an sshd that listens on no port at all."""
    hint = "its sshd_config needs `AllowTcpForwarding yes`"
    return NodeError(ErrorKind.DENIED, f"sshd on {target.host} forwards no ports", hint)
