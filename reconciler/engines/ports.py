"""The rule on ports that engines open by themselves: those of lanes that share a node differ.

The ports that a spec writes are compared in `specs.rules.conflicts`; these come out only when ranks are rendered: an
engine's own defaults (RPC of llama.cpp, Ray), and pages that workers serve.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import specs


@dataclass(frozen=True)
class Opened:
    """What one rank of a placement listens on. `placement`: its index in the spec; `lane`, `cluster`: its names."""

    placement: int
    lane: str
    cluster: str
    node: str
    role: str
    ports: tuple[int, ...]

    def __str__(self) -> str:
        return f"the {self.role} of {self.lane} on {self.cluster}"


def collisions(draft: specs.Draft, ranks: Iterable[Opened]) -> Iterator[specs.Diagnostic]:
    """Yield a fault for each port of a node that ranks of two placements open, and the spec does not show it."""
    first: dict[tuple[str, int], Opened] = {}
    said: set[tuple[int, int, int]] = set()
    for rank in ranks:
        for port in rank.ports:
            seen = first.setdefault((rank.node, port), rank)
            clash = (seen.placement, rank.placement, port)
            if seen.placement == rank.placement or clash in said or _is_written(draft, seen, rank, port):
                continue
            said.add(clash)
            yield draft.at(
                ("placements", rank.placement),
                f"port {port} is opened twice on {rank.node}",
                f"By {rank}, and by {seen} at {draft.place('placements', seen.placement)}.",
                "set another port in `ports` of one lane, or place one on a cluster with another `port`",
            )


def _is_written(draft: specs.Draft, one: Opened, other: Opened, port: int) -> bool:
    """Whether the spec itself shows that both open it: then that is said of the spec."""
    return all(port in _written(draft, rank) for rank in (one, other))


def _written(draft: specs.Draft, rank: Opened) -> frozenset[int]:
    own = frozenset(draft.lanes[rank.lane].ports.values())
    cluster = draft.clusters[rank.cluster]
    return own | {cluster.port, cluster.rendezvous_port} if rank.role == "head" else own
