"""The options that restrict a plan to what is asked for, and names that are looked up in the spec."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from reconciler.core.targets import Targets
    from reconciler.fleet import Fleet

Lanes = Annotated[list[str] | None, typer.Option("--lane", metavar="NAME", help="Only this lane; may be repeated.")]
Clusters = Annotated[
    list[str] | None, typer.Option("--cluster", metavar="NAME", help="Only what is placed on this cluster.")
]
Nodes = Annotated[list[str] | None, typer.Option("--node", metavar="NAME", help="Only what has to do with this node.")]


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
    """Raises `typer.BadParameter` for a name that the spec does not have, with the one that may be meant."""
    known = sorted(known)
    for name in names:
        if name not in known:
            import specs

            hint = specs.did_you_mean(name, known) or f"known: {', '.join(known) or 'none'}"
            raise typer.BadParameter(f"no {kind} named '{name}'; {hint}")
