"""Who has the lease of which node, as text: one line a node."""

from collections.abc import Sequence

from reconciler.core.leases import Holder, NodeLease
from reconciler.views.words import one_line


def lease_text(leases: Sequence[NodeLease]) -> str:
    """All nodes; those that could not be asked with the reason."""
    width = max((len(item.node) for item in leases), default=0)
    return "".join(f"{one_line(f'{item.node:{width}}  {_told(item)}')}\n" for item in leases)


def _told(item: NodeLease) -> str:
    if item.unknown is not None:
        return f"unknown: {item.unknown.reason}"
    return held_text(item.holder) if item.holder is not None else "free"


def held_text(holder: Holder) -> str:
    """Who has a lease, with its number."""
    return one_line(f"leased by {holder.told}, fence {holder.fence}")
