"""How an image gets to a node that lacks it: from the controller, or by a neighbour that passes it on."""

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


@dataclass(frozen=True)
class Transfer:
    """What a plan says of one pull, for people and programs. Sizes in bytes; None where nothing is known.

    `missing_bytes` (compressed) are to be fetched, 0 when the content is there under another name; `layers_shared` of
    `layers` are there already. `origin`: where the bytes come from, for people ("the vault", "https://ghcr.io").
    `seed`: the node that passes them on, and `seed_holds`: it has all of them already. `disk_free_after_bytes`: once
    everything that this plan brings to the node is there. `seconds` is an estimate.
    """

    gang: str
    node: str
    image: str
    origin: str
    missing_bytes: int | None
    unpacked_bytes: int | None
    layers_shared: int
    layers: int
    disk_free_bytes: int | None
    disk_free_after_bytes: int | None
    seconds: int | None
    seed: str | None
    seed_holds: bool = False

    @property
    def is_naming(self) -> bool:
        """Whether it is named only: no layer moves."""
        return self.missing_bytes == 0
