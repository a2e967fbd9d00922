"""Rules on placements that get into each other's way."""

from collections.abc import Iterator

from specs.diagnostics import Diagnostic, listing
from specs.draft import Draft, Placed


def lane_is_placed_once(draft: Draft) -> Iterator[Diagnostic]:
    """A lane is placed on a cluster at most once: the two names are the address of a placement."""
    first: dict[tuple[str, str], int] = {}
    for index, placement in draft.placements.items():
        seen = first.setdefault((placement.lane, placement.cluster), index)
        if seen != index:
            yield draft.at(
                ("placements", index),
                f"{placement.lane} is placed on {placement.cluster} twice",
                f"It is first placed at {draft.place('placements', seen)}.",
                "remove one, or give the second lane a name of its own",
            )


def nodes_are_not_shared(draft: Draft) -> Iterator[Diagnostic]:
    """Two placements share a node only when both lanes say `shares: true`."""
    holders: dict[str, Placed] = {}  # by node: the first placement on it
    exclusive: dict[str, Placed] = {}  # by node: the first placement on it that does not share
    for placed in draft.placed():
        firsts = exclusive if placed.lane.shares else holders
        yield from _overlaps(draft, placed, firsts)
        for node in placed.nodes:
            holders.setdefault(node, placed)
            if not placed.lane.shares:
                exclusive.setdefault(node, placed)


def ports_differ(draft: Draft) -> Iterator[Diagnostic]:
    """The ports that lanes open on one node differ."""
    opened: dict[tuple[str, int], tuple[Placed, str]] = {}
    for placed in draft.placed():
        clashes: dict[tuple[int, int], tuple[str, str, list[str]]] = {}
        for node, port, what in _ports(placed):
            first, its = opened.setdefault((node, port), (placed, what))
            if (first is not placed and first.lane.shares and placed.lane.shares) or (first is placed and its != what):
                clash = clashes.setdefault((first.index, port), (f"{its} of {first}", what, []))
                clash[2].append(node)
        for (index, port), (its, what, nodes) in clashes.items():
            yield draft.at(
                placed.loc,
                f"port {port} is taken twice on {listing(nodes)}",
                f"It is the {what} of {placed}, and the {its} at {draft.place('placements', index)}.",
                "give one of them another port",
            )


def _overlaps(draft: Draft, placed: Placed, firsts: dict[str, Placed]) -> Iterator[Diagnostic]:
    shared: dict[int, list[str]] = {}
    for node in placed.nodes:
        if node in firsts:
            shared.setdefault(firsts[node].index, []).append(node)
    for index, nodes in shared.items():
        other = firsts[nodes[0]]
        if (other.placement.lane, other.placement.cluster) == (placed.placement.lane, placed.placement.cluster):
            continue  # said by lane_is_placed_once
        here, there = draft.place(*placed.loc), draft.place("placements", index)
        yield draft.at(
            placed.loc,
            f"{placed} and {other} share {listing(nodes)}",
            f"{placed} is placed at {here}, {other} at {there}.\nOne node runs one lane, unless both can share it.",
            "remove one placement, or set `shares: true` on both lanes",
        )


def _ports(placed: Placed) -> Iterator[tuple[str, int, str]]:
    """Yield the ports a placement opens: node, port, what it is for."""
    if not placed.nodes:
        return
    yield placed.nodes[0], placed.cluster.port, "HTTP port"
    if len(placed.nodes) > 1:
        yield placed.nodes[0], placed.cluster.rendezvous_port, "rendezvous port"
    for node in placed.nodes:
        for name, port in placed.lane.ports.items():
            yield node, port, f"port `{name}`"
