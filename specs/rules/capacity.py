"""Rules on what fits: lanes on clusters, memory and GPUs on nodes."""

from collections.abc import Iterator

from specs.diagnostics import Diagnostic, listing
from specs.draft import Draft, Placed


def cluster_is_large_enough(draft: Draft) -> Iterator[Diagnostic]:
    """A cluster has at least as many nodes as a lane that is placed on it takes."""
    for placed in draft.placed():
        need, have = placed.lane.node_count, len(placed.cluster.nodes)
        if need > have:
            yield draft.at(
                (*placed.loc, "cluster"),
                f"the lane '{placed.placement.lane}' takes {need} nodes, the cluster has {have}",
                _why_so_many(placed),
                "place it on a larger cluster, or set `nodes` on the lane",
            )


def named_nodes_fit(draft: Draft) -> Iterator[Diagnostic]:
    """The nodes a placement names belong to its cluster and are as many as the lane takes."""
    for placed in draft.placed():
        named = placed.placement.nodes
        if named is None:
            continue
        members = set(placed.cluster.nodes)
        for index, node in enumerate(named):
            if node not in members:
                yield draft.at(
                    (*placed.loc, "nodes", index),
                    f"'{node}' is no node of the cluster '{placed.placement.cluster}'",
                    f"Its nodes are {listing(placed.cluster.nodes)}.",
                )
        need = placed.lane.node_count
        if len(named) != need:
            yield draft.at(
                (*placed.loc, "nodes"),
                f"the lane '{placed.placement.lane}' takes {need} nodes, {len(named)} named here",
                _why_so_many(placed),
            )


def memory_fits(draft: Draft) -> Iterator[Diagnostic]:
    """A rank needs no more memory than its node has."""
    for placed in draft.placed():
        need = placed.lane.memory or 0
        has = {node: memory for node in placed.nodes if (memory := _memory(draft, node)) is not None}
        small = {node: _gib(memory) for node, memory in has.items() if need > memory}
        yield from _too_small(draft, placed, "memory", f"a rank needs {_gib(need)}, too much for", small)


def gpus_fit(draft: Draft) -> Iterator[Diagnostic]:
    """A rank takes no more GPUs than its node has."""
    for placed in draft.placed():
        need = placed.lane.gpus or 0
        has = {node: draft.nodes[node].gpus for node in placed.nodes if node in draft.nodes}
        small = {node: str(gpus) for node, gpus in has.items() if need > gpus}
        yield from _too_small(draft, placed, "gpus", f"a rank takes {need} GPUs, too many for", small)


def parallel_fits(draft: Draft) -> Iterator[Diagnostic]:
    """The GPUs a lane is split over are the same number on each of its nodes, and no more than a node has."""
    for placed in draft.placed():
        total, nodes = placed.lane.gpu_count, len(placed.nodes)
        if total == 1 or nodes != placed.lane.node_count:
            continue
        if total % nodes:
            yield _unsplit(draft, placed, f"{_product(placed)} cannot be spread evenly over {nodes} nodes")
            continue
        each = total // nodes
        has = {node: _gpus(draft, placed, node) for node in placed.nodes if node in draft.nodes}
        on_cpu = not any(has.values())
        if small := {node: gpus for node, gpus in has.items() if gpus < each and not on_cpu}:
            node, gpus = next(iter(small.items()))
            what = f"{_product(placed)} on {nodes} nodes is {each} a node, too many for {listing(small)}"
            yield _unsplit(draft, placed, f"{what} ({node} has {gpus})")


def shared_memory_fits(draft: Draft) -> Iterator[Diagnostic]:
    """What the lanes that share a node declare adds up to no more than the node has."""
    taken: dict[str, int] = {}
    for placed in draft.placed():
        need = placed.lane.memory or 0
        over = [node for node in placed.nodes if node in taken and taken[node] + need > (_memory(draft, node) or 2**64)]
        for node in placed.nodes:
            taken[node] = taken.get(node, 0) + need
        if over and placed.lane.shares and need:
            node, have = over[0], _memory(draft, over[0]) or 0
            yield draft.at(
                placed.loc,
                f"the lanes that share {listing(over)} need {_gib(taken[node])} on {node}, which has {_gib(have)}",
                f"The last of them is {placed.placement.lane}, with {_gib(need)}.",
            )


def _too_small(draft: Draft, placed: Placed, key: str, what: str, small: dict[str, str]) -> Iterator[Diagnostic]:
    """Yield the fault of a lane whose `key` is more than the nodes in `small` have."""
    if small:
        node, has = next(iter(small.items()))
        yield draft.at(
            ("lanes", placed.placement.lane, key),
            f"{what} {listing(small)} ({node} has {has})",
            f"The lane is placed at {draft.place(*placed.loc)}.",
        )


def _unsplit(draft: Draft, placed: Placed, summary: str) -> Diagnostic:
    at = f"The lane is placed at {draft.place(*placed.loc)}."
    return draft.at(("lanes", placed.placement.lane, "parallel"), summary, at, "change `parallel` or `nodes`")


def _product(placed: Placed) -> str:
    """ "tensor 8 x pipeline 2 = 16 GPUs"."""
    lane = placed.lane
    degrees = {"tensor": lane.parallel.tensor, "pipeline": lane.parallel.pipeline, "data": lane.parallel.data}
    said = " x ".join(f"{name} {degree}" for name, degree in degrees.items() if degree > 1)
    return f"{said} = {lane.gpu_count} GPUs"


def _gpus(draft: Draft, placed: Placed, node: str) -> int:
    return draft.nodes[node].gpus if placed.lane.gpus is None else placed.lane.gpus


def _why_so_many(placed: Placed) -> str:
    lane = placed.lane
    if lane.nodes is not None:
        return f"The lane says `nodes: {lane.nodes}`."
    degrees = f"tensor {lane.parallel.tensor} x pipeline {lane.parallel.pipeline} x data {lane.parallel.data}"
    return f"The lane does not say `nodes`, so it takes {degrees}, one GPU a node."


def _memory(draft: Draft, node: str) -> int | None:
    return draft.nodes[node].memory if node in draft.nodes else None


def _gib(size: int) -> str:
    return f"{size / 2**30:.4g} GiB"
