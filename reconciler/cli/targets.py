"""The options that restrict a plan to what is asked for, and names that are looked up in the spec."""

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Annotated

import typer

from reconciler.cli.wiring import warn

if TYPE_CHECKING:
    from reconciler.core.targets import Targets
    from reconciler.fleet import Fleet

Lanes = Annotated[list[str] | None, typer.Option("--lane", metavar="NAME", help="Only this lane; may be repeated.")]
Clusters = Annotated[
    list[str] | None, typer.Option("--cluster", metavar="NAME", help="Only what is placed on this cluster.")
]
Nodes = Annotated[list[str] | None, typer.Option("--node", metavar="NAME", help="Only what has to do with this node.")]
Names = Annotated[list[str] | None, typer.Argument(metavar="[NODE|CLUSTER|LANE]...", help="What to look at; all.")]


def targets(
    fleet: "Fleet", lanes: Iterable[str] | None, clusters: Iterable[str] | None, nodes: Iterable[str] | None
) -> "Targets":
    """What is asked for, every name of it known to the spec. Raises `typer.BadParameter`."""
    from reconciler.core.targets import Targets

    spec = fleet.spec
    must_be_known("lane", lanes or (), spec.lanes)
    must_be_known("cluster", clusters or (), spec.clusters)
    must_be_known("node", nodes or (), spec.nodes)
    return Targets(frozenset(lanes or ()), frozenset(clusters or ()), frozenset(nodes or ()))


def must_be_known(kind: str, names: Iterable[str], known: Iterable[str]) -> None:
    """Raises `typer.BadParameter` for names that the spec does not have, each with the one that may be meant."""
    known = sorted(known)
    wrong = [name for name in dict.fromkeys(names) if name not in known]
    if wrong:
        import specs

        every = f"known: {', '.join(known) or 'none'}"
        hints = [specs.did_you_mean(name, known) for name in wrong]
        told = [f"no {kind} named '{name}'{hint and f'; {hint}'}" for name, hint in zip(wrong, hints, strict=True)]
        raise typer.BadParameter("; ".join([*told, *([] if all(hints) else [every])]))


def meant(fleet: "Fleet", names: Collection[str]) -> tuple[frozenset[str] | None, frozenset[str] | None]:
    """Nodes and gangs that the names stand for; None for all. Raises `typer.BadParameter`."""
    if not names:
        return None, None
    spec = fleet.spec
    placed = fleet.desired.gangs
    known = {*spec.nodes, *spec.clusters, *spec.lanes, *(gang.address for gang in placed)}
    must_be_known("node, cluster, lane or placement", names, known)
    for name in sorted({*names} & {*spec.lanes} - {gang.lane for gang in placed} - {*spec.nodes, *spec.clusters}):
        warn(f"the lane {name} is placed nowhere: there is no node to check it on")
    gangs = [gang for gang in placed if {gang.address, gang.lane, gang.cluster, *gang.nodes} & set(names)]
    nodes = {name for name in names if name in spec.nodes}
    nodes |= {node for name in names if name in spec.clusters for node in spec.clusters[name].nodes}
    nodes |= {node for gang in gangs if {gang.address, gang.lane} & {*names} for node in gang.nodes}
    return frozenset(nodes), frozenset(gang.address for gang in gangs)
