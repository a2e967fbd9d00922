"""Nodes that the spec declares powered off: nobody goes there, and everybody is told why."""

from collections.abc import Mapping

import specs
from reconciler.core.observed import Unknown, UnknownKind
from reconciler.nodes.errors import NodeUnknownError
from reconciler.nodes.protocols import Fleet, Hooks, Node, Sources


def without_absent(nodes: Fleet, spec: specs.Spec, today: str) -> Fleet:
    """The way to the nodes, on the day `today` (ISO), which leads to none that the spec declares off for that day."""
    off = {name: node.off for name, node in spec.nodes.items() if node.off is not None}
    absent = {name: item.reason for name, item in off.items() if item.until is None or today <= item.until.isoformat()}
    return WithAbsent(nodes, absent) if absent else nodes


class WithAbsent:
    """A way to nodes, for a fleet some nodes of which are declared off. `absent`: the reason of each, by name.

    See `protocols.Fleet`.
    """

    def __init__(self, nodes: Fleet, absent: Mapping[str, str]) -> None:
        self._nodes = nodes
        self._absent = absent

    @property
    def sources(self) -> Sources:
        """Where images come from."""
        return self._nodes.sources

    @property
    def hooks(self) -> Hooks:
        """What the controller calls around a change."""
        return self._nodes.hooks

    @property
    def sent_bytes(self) -> int:
        """Bytes of images that left the controller so far."""
        return self._nodes.sent_bytes

    async def connect(self, node: str, deadline_s: float) -> Node:
        """An open session. Raises `NodeUnknownError`, at once for a node that is declared off."""
        reason = self._absent.get(node)
        if reason is not None:
            raise NodeUnknownError(Unknown(node, UnknownKind.OFF, f"powered off (declared): {reason}"))
        return await self._nodes.connect(node, deadline_s)

    async def close(self) -> None:
        """End all sessions."""
        await self._nodes.close()
