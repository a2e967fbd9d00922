"""What a YAML file says, with the place of every key and value."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from specs.diagnostics import Place

Loc = tuple[str | int, ...]


@dataclass(slots=True, eq=False)
class Scalar:
    """A value without parts. `plain` is false when it was written in quotes or as a block."""

    place: Place
    text: str
    plain: bool
    size: int = 1  # keys and values it stands for, aliases written out
    height: int = 0  # levels of nesting below it


@dataclass(slots=True, eq=False)
class Sequence:
    """A list."""

    place: Place
    items: list["Tree"] = field(default_factory=list)
    size: int = 1
    height: int = 1


class Entry(NamedTuple):
    """One value of a mapping, and where its key stands."""

    place: Place
    value: "Tree"


@dataclass(slots=True, eq=False)
class Mapping:
    """A mapping, in the order of the file."""

    place: Place
    entries: dict[str, Entry] = field(default_factory=dict)
    size: int = 1
    height: int = 1


Tree = Scalar | Sequence | Mapping


def walk(tree: Tree, loc: Loc) -> Iterator[Entry]:
    """Yield what is found on the way to `loc`, the root first.

    Parts that lead nowhere are passed over: a validator's own marks, or a value nobody wrote.
    """
    here = Entry(tree.place, tree)
    yield here
    for part in loc:
        below = _child(here.value, part)
        if below is not None:
            here = below
            yield here


def value_place(tree: Tree, loc: Loc) -> Place:
    """Return where the value at `loc` stands, or the nearest value around it."""
    *_, last = walk(tree, loc)
    return last.value.place


def key_place(tree: Tree, loc: Loc) -> Place:
    """Return where the key of the value at `loc` stands, or the nearest key around it."""
    *_, last = walk(tree, loc)
    return last.place


def find(tree: Tree, loc: Loc) -> Tree:
    """Return the value at `loc`, or the nearest value around it."""
    *_, last = walk(tree, loc)
    return last.value


def select(tree: Tree, *pattern: str) -> Iterator[tuple[Loc, Entry]]:
    """Yield each value whose location matches `pattern`, in order; "*" matches every key and every item."""
    found: list[tuple[Loc, Entry]] = [((), Entry(tree.place, tree))]
    for part in pattern:
        found = [((*loc, key), below) for loc, entry in found for key, below in _children(entry.value, part)]
    yield from found


def _children(tree: Tree, part: str) -> Iterator[tuple[str | int, Entry]]:
    if isinstance(tree, Mapping):
        keys = list(tree.entries) if part == "*" else [part]
        yield from ((key, tree.entries[key]) for key in keys if key in tree.entries)
    elif isinstance(tree, Sequence) and part == "*":
        yield from ((index, Entry(item.place, item)) for index, item in enumerate(tree.items))


def _child(tree: Tree, part: str | int) -> Entry | None:
    if isinstance(tree, Mapping) and isinstance(part, str):
        return tree.entries.get(part)
    if isinstance(tree, Sequence) and isinstance(part, int) and 0 <= part < len(tree.items):
        item = tree.items[part]
        return Entry(item.place, item)
    return None
