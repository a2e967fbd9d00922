"""What has to be looked at beyond the usual, because a rank that does not run would need it."""

from collections.abc import Iterable, Mapping

from reconciler.core.desired import Desired, ImagePin
from reconciler.core.models import ModelPlace, ModelWant
from reconciler.core.observed import NodeFacts, Unknown

Places = dict[ModelPlace, frozenset[str]]
"""Where models are looked for, each with the files whose checksum is wanted."""


def paths_to_boot(desired: Desired, states: Mapping[str, NodeFacts | Unknown]) -> dict[str, set[str]]:
    """What has to be there, by node, for ranks that do not run. A running one proves its own: its files are not
    touched again, so a storage that hangs is trouble only for what would boot from it.
    """
    found: dict[str, set[str]] = {}
    for rank in (rank for gang in desired.gangs for rank in gang.ranks):
        facts = states.get(rank.node)
        if isinstance(facts, NodeFacts) and rank.paths and not facts.runs(rank.fingerprint):
            found.setdefault(rank.node, set()).update(rank.paths)
    return found


def models_to_boot(desired: Desired, states: Mapping[str, NodeFacts | Unknown]) -> dict[str, Places]:
    """The models that ranks which do not run would read, by node."""
    found: dict[str, Places] = {}
    for rank in (rank for gang in desired.gangs for rank in gang.ranks):
        facts = states.get(rank.node)
        if isinstance(facts, NodeFacts) and not facts.runs(rank.fingerprint):
            add_places(found, rank.node, rank.models)
    return found


def models_running(desired: Desired, states: Mapping[str, NodeFacts | Unknown]) -> dict[str, Places]:
    """The models of ranks that run, by node: what a plan leaves alone, and a look for drift does not."""
    found: dict[str, Places] = {}
    for rank in (rank for gang in desired.gangs for rank in gang.ranks):
        facts = states.get(rank.node)
        if isinstance(facts, NodeFacts) and facts.runs(rank.fingerprint):
            add_places(found, rank.node, rank.models)
    return found


def add_places(found: dict[str, Places], node: str, wants: Iterable[ModelWant]) -> None:
    """Have the places of these looked at, too."""
    for want in (want for want in wants if want.is_mounted):
        places = found.setdefault(node, {})
        places[want.place] = places.get(want.place, frozenset()) | {file for file, _ in want.verify}


def images_lacking(desired: Desired, states: Mapping[str, NodeFacts | Unknown]) -> list[tuple[str, ImagePin]]:
    """Node and image of every rank whose node lacks its image."""
    ranks = (rank for gang in desired.gangs for rank in gang.ranks)
    read = ((rank, states.get(rank.node)) for rank in ranks)
    return [
        (rank.node, rank.container.image)
        for rank, facts in read
        if isinstance(facts, NodeFacts) and facts.image_for(rank.container.image) is None
    ]
