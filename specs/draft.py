"""A spec under validation: what is valid so far, and what is only named."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from specs.diagnostics import Diagnostic, Place
from specs.fields import is_name
from specs.inventory import Cluster, Node
from specs.lanes import Lane, Model, Placement
from specs.scalars import is_text
from specs.tree import Loc, Scalar, Tree, key_place, select, value_place


@dataclass(frozen=True, slots=True)
class Placed:
    """A placement whose lane and cluster are valid; `nodes` are those it takes, the head first."""

    index: int
    placement: Placement
    lane: Lane
    cluster: Cluster
    nodes: tuple[str, ...]

    @property
    def loc(self) -> Loc:
        """Where the placement stands in the spec."""
        return ("placements", self.index)

    def __str__(self) -> str:
        return f"{self.placement.lane} on {self.placement.cluster}"


@dataclass(frozen=True)
class Draft:
    """The valid objects of a spec, each checked by itself, for the rules that look at several.

    `declared` also holds the names of objects that are not valid. `complete` is false when a file could not be used.
    """

    nodes: Mapping[str, Node]
    clusters: Mapping[str, Cluster]
    models: Mapping[str, Model]
    lanes: Mapping[str, Lane]
    placements: Mapping[int, Placement]
    declared: Mapping[str, Collection[str]]
    complete: bool
    tree: Tree

    def placed(self) -> Iterator[Placed]:
        """Yield the placements whose lane and cluster are valid, in order."""
        for index, placement in self.placements.items():
            lane, cluster = self.lanes.get(placement.lane), self.clusters.get(placement.cluster)
            if lane is not None and cluster is not None:
                # A named node outside of the cluster has a rule of its own, and takes part in no other.
                members = set(cluster.nodes)
                named = tuple(node for node in placement.nodes or () if node in members)
                nodes = cluster.nodes[: lane.node_count] if placement.nodes is None else named
                yield Placed(index, placement, lane, cluster, nodes)

    def names(self, *pattern: str) -> Iterator[tuple[Loc, str]]:
        """Yield where each well-formed name stands that matches a pattern, in objects that are not valid as well."""
        for loc, entry in select(self.tree, *pattern):
            value = entry.value
            if isinstance(value, Scalar) and is_name(value.text) and not (value.plain and not is_text(value.text)):
                yield loc, value.text

    def keys(self, *pattern: str) -> Iterator[Loc]:
        """Yield the location of each value that matches a pattern, in objects that are not valid as well."""
        yield from (loc for loc, _ in select(self.tree, *pattern))

    def undefined(self, section: str, name: str) -> bool:
        """Return whether a name is certainly defined nowhere."""
        return self.complete and name not in self.declared.get(section, ())

    def place(self, *loc: str | int) -> Place:
        """Return where a value stands."""
        return value_place(self.tree, loc)

    def at(self, loc: Loc, summary: str, detail: str = "", hint: str = "") -> Diagnostic:
        """Return a diagnostic at the value at `loc`."""
        return Diagnostic.at(self.place(*loc), summary, detail, hint)

    def at_key(self, loc: Loc, summary: str, detail: str = "", hint: str = "") -> Diagnostic:
        """Return a diagnostic at the key of the value at `loc`."""
        return Diagnostic.at(key_place(self.tree, loc), summary, detail, hint)
