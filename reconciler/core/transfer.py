"""How an image gets to the nodes that lack it: what moves, who passes it on, what it takes of time and disk."""

from dataclasses import dataclass

from reconciler.core.desired import Gang


@dataclass(frozen=True)
class Relay:
    """A node that passes the image's bytes on to its neighbours over the cluster's own network.

    `address`: where it listens there. `peers`: the addresses it is meant for, and no others.
    """

    seed: str
    address: str
    peers: tuple[str, ...]

    @classmethod
    def of(cls, gang: Gang, seed: str) -> "Relay":
        """The relay of a gang by one of its nodes."""
        addresses = {rank.node: rank.address for rank in gang.ranks}
        return cls(seed, addresses[seed], tuple(address for node, address in addresses.items() if node != seed))
