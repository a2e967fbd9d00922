"""Who reaches whom: addresses and ports of the simulated nodes."""

from collections.abc import Mapping

from reconciler.nodes.errors import ErrorKind, NodeError
from reconciler.testing.containers import SimContainer
from reconciler.testing.node import SimNode

LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
ANYWHERE = frozenset({"0.0.0.0", "::", "*"})  # noqa: S104 - names to compare with


class Network:
    """All nodes, by name, on one network."""

    def __init__(self, nodes: Mapping[str, SimNode]) -> None:
        self._nodes = nodes

    def target(self, origin: SimNode, address: str) -> SimNode:
        """The node behind `address` as seen from `origin`. Raises `NodeError` REFUSED when there is no way to it."""
        if address in LOOPBACK | origin.config.addresses:
            return origin
        for node in self._nodes.values():
            if address in node.config.addresses and node.is_on:
                return node
        raise NodeError(ErrorKind.REFUSED, f"no route from {origin.name} to {address}")

    def is_silent(self, origin: SimNode, target: SimNode) -> bool:
        """Whether packets between the two get lost."""
        return origin is not target and not (origin.is_linked and target.is_linked)

    def listener(self, target: SimNode, address: str, port: int) -> SimContainer | None:
        """The container of `target` that listens on this address and port."""
        found = target.runtime.listening(port)
        if found is None:
            return None
        hosts = {host for host, number in found.behaviour.ports if number == port}
        asked = LOOPBACK if address in LOOPBACK else {address, target.config.address}
        return found if hosts & (ANYWHERE | asked) else None

    def is_open(self, target: SimNode, address: str, port: int) -> bool:
        """Whether anything of `target` listens there."""
        return port in target.runtime.host_ports or self.listener(target, address, port) is not None

    def accepts(self, origin: SimNode, address: str, port: int) -> bool:
        """Whether a connection from `origin` would be had."""
        try:
            target = self.target(origin, address)
        except NodeError:
            return False
        return not self.is_silent(origin, target) and self.is_open(target, address, port)
