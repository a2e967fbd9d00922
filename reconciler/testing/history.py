"""What happened on the simulated nodes, for assertions."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations
from math import inf
from typing import Literal

from reconciler.core.observed import Owner

What = Literal["created", "started", "exited", "renamed", "removed", "image"]


@dataclass(frozen=True)
class Happening:
    """A change of a node's containers or images. `name` as it was then; `at_s` in virtual seconds.

    `by`: the controller whose call did it; empty for a person, and for what happened by itself.
    """

    at_s: float
    node: str
    what: What
    name: str
    container_id: str = ""
    owner: Owner | None = None
    gpus: int = 0
    detail: str = ""
    by: str = ""


@dataclass(frozen=True)
class Span:
    """A container that ran without a break; `until_s` is infinite while it does."""

    node: str
    container_id: str
    name: str
    owner: Owner | None
    gpus: int
    from_s: float
    until_s: float


@dataclass(frozen=True)
class Overlap:
    """Two containers that ran on one node at one time and should not have."""

    node: str
    first: str
    second: str
    from_s: float
    until_s: float


def spans(history: Iterable[Happening]) -> tuple[Span, ...]:
    """When each container ran."""
    running: dict[str, Happening] = {}
    found: list[Span] = []
    for item in history:
        if item.what == "started":
            running[item.container_id] = item
        elif item.what == "exited":
            found.append(_span(running.pop(item.container_id), item.at_s))
    return (*found, *(_span(item, inf) for item in running.values()))


def _span(start: Happening, until_s: float) -> Span:
    return Span(start.node, start.container_id, start.name, start.owner, start.gpus, start.at_s, until_s)


def overlaps(history: Iterable[Happening]) -> tuple[Overlap, ...]:
    """Pairs that ran together on one node: of two gangs or of two revisions of ours, or both holding GPUs."""
    return tuple(_overlaps(sorted(spans(history), key=lambda span: (span.node, span.from_s, span.name))))


def _overlaps(found: list[Span]) -> Iterator[Overlap]:
    for one, other in combinations(found, 2):
        from_s, until_s = max(one.from_s, other.from_s), min(one.until_s, other.until_s)
        if one.node == other.node and from_s < until_s and _conflict(one, other):
            yield Overlap(one.node, one.name, other.name, from_s, until_s)


def _conflict(one: Span, other: Span) -> bool:
    if one.container_id == other.container_id:
        return False
    if one.owner and other.owner:
        return (one.owner.gang, one.owner.revision) != (other.owner.gang, other.owner.revision)
    return one.gpus > 0 and other.gpus > 0
