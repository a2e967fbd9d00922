"""Rules on what is let pass."""

from collections.abc import Iterator

from specs.diagnostics import Diagnostic, did_you_mean, listing
from specs.draft import Draft
from specs.tree import Scalar, select

WILD = frozenset("*?[")
"""What makes an address a pattern: such a one may mean a node that is still to come."""


def silenced_places_exist(draft: Draft) -> Iterator[Diagnostic]:
    """The node of a silence, or its cluster and lane, is defined: else nothing would ever be let pass by it."""
    for loc, entry in select(draft.tree, "checks", "silence", "*", "address"):
        value = entry.value
        if not isinstance(value, Scalar) or WILD & set(value.text):
            continue
        for section, name in _named(value.text):
            if draft.undefined(section, name):
                known = draft.declared.get(section, ())
                yield draft.at(
                    loc,
                    f"no {section.removesuffix('s')} is named '{name}'",
                    f"A silence is at a node, or at cluster/lane. The {section} are: {listing(known) or 'none'}.",
                    did_you_mean(name, known),
                )


def _named(address: str) -> Iterator[tuple[str, str]]:
    cluster, slash, lane = address.partition("/")
    yield from (("clusters", cluster), ("lanes", lane)) if slash else (("nodes", cluster),)
