"""Which nodes could give a model to a neighbour that lacks it, and what has to be looked at to know."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from reconciler.core.desired import Desired, Gang
from reconciler.core.models import ModelFacts, ModelWant, same_revision
from reconciler.core.needs import Places, add_places
from reconciler.core.observed import NodeFacts, Observed, Unknown


@dataclass(frozen=True)
class Source:
    """A node that has a model whole. `address`: where its neighbours in the cluster reach it."""

    node: str
    address: str
    want: ModelWant
    facts: ModelFacts


def everywhere(gang: Gang) -> Iterator[tuple[str, str, tuple[ModelWant, ...]]]:
    """Node, its address and the models of the gang, for each node of its cluster, those of the gang first."""
    for rank in gang.ranks:
        yield rank.node, rank.address, rank.models
    for shelf in gang.shelves:
        yield shelf.node, shelf.address, shelf.wants


def sources(gang: Gang, observed: Observed, name: str) -> Iterator[Source]:
    """The nodes of the gang's cluster that have this model whole, as far as they were looked at."""
    for node, address, wants in everywhere(gang):
        facts = observed.facts(node)
        for want in wants:
            found = facts.model_at(want.place) if facts is not None and want.name == name else None
            if found is not None and found.is_whole and has_revision(want, found) and has_sums(want, found):
                yield Source(node, address, want, found)


def has_revision(want: ModelWant, found: ModelFacts) -> bool:
    """Whether it is the pinned revision, or that cannot be told."""
    return not want.revision or not found.revision or same_revision(want.revision, found.revision)


def has_sums(want: ModelWant, found: ModelFacts) -> bool:
    """Whether every checksum that was told is the one that is wanted, and no file of them is missing."""
    return not list(wrong_sums(want, found))


def wrong_sums(want: ModelWant, found: ModelFacts) -> Iterator[tuple[str, str]]:
    """File and what is wrong with it, for each file whose checksum is wanted. What was not told is not wrong."""
    there, bad = found.by_path, {link.path for link in found.bad_links}
    for path, digest in want.verify:
        file = there.get(path)
        if file is None:
            if path not in bad:
                yield path, "is not there"
        elif file.digest and file.digest != digest:
            yield path, f"has {file.digest[:19]}, the spec says {digest[:19]}"


def lacking(want: ModelWant, facts: NodeFacts) -> bool:
    """Whether the node certainly has it not, or not whole."""
    found = facts.model_at(want.place)
    return found is not None and (found.there == "absent" or (found.is_there and bool(found.missing)))


def models_elsewhere(desired: Desired, states: Mapping[str, NodeFacts | Unknown]) -> dict[str, Places]:
    """Where else a model may be that a node lacks which has to boot from it: the rest of the cluster."""
    found: dict[str, Places] = {}
    for gang in desired.gangs:
        names = {want.name for rank in gang.ranks for want in _lacking(rank.models, states.get(rank.node))}
        for node, _, wants in everywhere(gang) if names else ():
            facts = states.get(node)
            if isinstance(facts, NodeFacts):
                unseen = (item for item in wants if item.name in names and facts.model_at(item.place) is None)
                add_places(found, node, unseen)
    return found


def _lacking(wants: Iterable[ModelWant], facts: NodeFacts | Unknown | None) -> Iterator[ModelWant]:
    return (want for want in wants if isinstance(facts, NodeFacts) and want.is_mounted and lacking(want, facts))
