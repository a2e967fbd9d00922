"""Rules on what is let pass."""

from collections.abc import Iterator

from specs.diagnostics import Diagnostic, did_you_mean, listing
from specs.draft import Draft
from specs.tree import Scalar, select

WILD = frozenset("*?[")
"""What makes an address a pattern: such a one may mean a node that is still to come."""


def silenced_places_exist(draft: Draft) -> Iterator[Diagnostic]:
    """The node of a silence, or its cluster and lane, is defined: else nothing would ever be let pass by it."""
    yield from _dangling(draft, "A silence", "checks", "silence", "*", "address")


def ignored_places_exist(draft: Draft) -> Iterator[Diagnostic]:
    """The node of an ignore rule, or its cluster and lane, is defined, too."""
    yield from _dangling(draft, "An ignore rule", "drift", "ignore", "*", "address")


def _dangling(draft: Draft, what: str, *pattern: str) -> Iterator[Diagnostic]:
    for loc, entry in select(draft.tree, *pattern):
        value = entry.value
        if not isinstance(value, Scalar) or WILD & set(value.text):
            continue
        for section, name in _named(value.text):
            if draft.undefined(section, name):
                known = draft.declared.get(section, ())
                yield draft.at(
                    loc,
                    f"no {section.removesuffix('s')} is named '{name}'",
                    f"{what} is at a node, or at cluster/lane. The {section} are: {listing(known) or 'none'}.",
                    did_you_mean(name, known),
                )


def _named(address: str) -> Iterator[tuple[str, str]]:
    """The names in an address: a node, `cluster/lane`, or what findings of drift have: `cluster/lane/RANK@NODE`."""
    place, at, node = address.partition("@")
    cluster, slash, rest = place.partition("/")
    lane = rest.partition("/")[0] if at else rest
    yield from (("clusters", cluster), ("lanes", lane)) if slash else (("nodes", cluster),)
    yield from (("nodes", node),) if at else ()
