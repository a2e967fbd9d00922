"""Rules on names that one object uses for another."""

from collections.abc import Iterator

from specs.diagnostics import Diagnostic, did_you_mean, listing
from specs.draft import Draft, Placed
from specs.lanes import Lane, Preflight
from specs.paths import placeholders
from specs.roles import Role
from specs.tree import Loc

MAX_GUESSES = 50

_SINGULAR = {"nodes": "node", "clusters": "cluster", "models": "model", "lanes": "lane"}


def cluster_nodes_exist(draft: Draft) -> Iterator[Diagnostic]:
    """Every node of a cluster is defined."""
    yield from _dangling(draft, "nodes", "clusters", "*", "nodes", "*")


def cluster_interface_exists(draft: Draft) -> Iterator[Diagnostic]:
    """Every node of a cluster has the cluster's interface."""
    for name, cluster in draft.clusters.items():
        nodes = {node: draft.nodes[node] for node in cluster.nodes if node in draft.nodes}
        lacking = [node for node, spec in nodes.items() if cluster.interface not in spec.interfaces]
        if cluster.interface is not None and lacking:
            known = {interface for node in lacking for interface in nodes[node].interfaces}
            yield draft.at(
                ("clusters", name, "interface"),
                f"clusters.{name}.interface: no interface '{cluster.interface}' on {listing(lacking)}",
                f"It must be a key of `interfaces` on each node of the cluster; there are: {listing(known) or 'none'}.",
                did_you_mean(cluster.interface, known),
            )


def lane_model_exists(draft: Draft) -> Iterator[Diagnostic]:
    """The model of a lane is defined."""
    yield from _dangling(draft, "models", "lanes", "*", "model")


def draft_model_exists(draft: Draft) -> Iterator[Diagnostic]:
    """The draft model of a model is defined."""
    yield from _dangling(draft, "models", "models", "*", "draft")
    for name, model in draft.models.items():
        if model.draft == name:
            yield draft.at(
                ("models", name, "draft"),
                f"the model '{name}' is named as its own drafter",
                "A drafter is a smaller model.",
                "name another one, or leave it out",
            )


def placement_names_exist(draft: Draft) -> Iterator[Diagnostic]:
    """The lane and the cluster of a placement are defined."""
    yield from _dangling(draft, "lanes", "placements", "*", "lane")
    yield from _dangling(draft, "clusters", "placements", "*", "cluster")


def parked_lane_is_not_placed(draft: Draft) -> Iterator[Diagnostic]:
    """A parked lane is kept but never placed."""
    for placed in draft.placed():
        parked = placed.lane.parked
        if parked is not None:
            reopen = f"It can be placed again when {parked.reopen_when}." if parked.reopen_when else ""
            yield draft.at(
                (*placed.loc, "lane"),
                f"the lane '{placed.placement.lane}' is parked",
                f"The reason: {parked.reason}\n{reopen}".rstrip(),
                "remove the placement, or remove `parked` from the lane",
            )


def paths_resolve(draft: Draft) -> Iterator[Diagnostic]:
    """Every {paths.NAME} of a placed lane and its model is a path of each node the placement takes."""
    for placed in draft.placed():
        for loc, text in _templates(draft, placed):
            for name in dict.fromkeys(placeholders(text)):
                nodes = {node: draft.nodes[node].paths for node in placed.nodes if node in draft.nodes}
                lacking = [node for node, paths in nodes.items() if name not in paths]
                if lacking:
                    yield draft.at(
                        loc,
                        f"no path '{name}' on {listing(lacking)}",
                        f"{{paths.{name}}} is used by {placed} at {draft.place(*placed.loc)}.",
                        did_you_mean(name, {known for node in lacking for known in nodes[node]})
                        or f"add `{name}` to the `paths` of each node",
                    )


def _templates(draft: Draft, placed: Placed) -> Iterator[tuple[Loc, str]]:
    """Yield each text of a placed lane that may name a path of the node."""
    name, lane = placed.placement.lane, placed.lane
    for index, mount in enumerate(lane.mounts):
        yield ("lanes", name, "mounts", index, "source"), mount.source
    for loc, of in _commands(name, lane):
        yield from (((*loc, "argv", index), word) for index, word in enumerate(of.argv))
        yield from (((*loc, "entrypoint", index), word) for index, word in enumerate(of.entrypoint or ()))
    for loc, role in _commands(name, lane)[1:]:
        yield from (((*loc, "env", key), value) for key, value in role.env.items() if isinstance(value, str))
    if isinstance(lane.preflight, Preflight):
        words = enumerate(lane.preflight.command or ())
        yield from ((("lanes", name, "preflight", "command", index), word) for index, word in words)
    model = draft.models.get(lane.model or "")
    if model is not None and model.path is not None:
        yield ("models", lane.model or "", "path"), model.path


def _commands(name: str, lane: Lane) -> tuple[tuple[Loc, Lane | Role], ...]:
    """What holds a command: the lane, and each of its roles."""
    loc: Loc = ("lanes", name)
    return (loc, lane), ((*loc, "roles", "head"), lane.roles.head), ((*loc, "roles", "worker"), lane.roles.worker)


def _dangling(draft: Draft, section: str, *pattern: str) -> Iterator[Diagnostic]:
    """Yield the names at `pattern` that are defined nowhere in `section`."""
    kind, known = _SINGULAR[section], draft.declared[section]
    defined = f"Defined: {listing(known)}." if known else f"No {kind} is defined."
    dangling = ((loc, name) for loc, name in draft.names(*pattern) if draft.undefined(section, name))
    for count, (loc, name) in enumerate(dangling):
        # Each guess looks at every known name: without a limit, a thousand wrong names would take minutes.
        guess = did_you_mean(name, known) if count < MAX_GUESSES else ""
        yield draft.at(loc, f"no {kind} is named '{name}'", defined, guess)
