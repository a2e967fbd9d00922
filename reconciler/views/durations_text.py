"""How long things took, as a table for a terminal: what a plan expects of the next time."""

from collections.abc import Sequence
from itertools import groupby

from reconciler.core.durations import Known
from reconciler.views.words import count, duration, one_line

DIGEST_SHOWN = 19
"""So many letters of a digest tell it from others."""

NAMES = {"room": "free memory"}
"""What a person calls a kind that the record calls otherwise: as plans and applies have it."""


def durations_text(found: Sequence[Known]) -> str:
    """A block for each model, image and kind of node; empty when nothing is known."""
    lines: list[str] = []
    for (model, image, node_class), group in groupby(found, key=lambda item: (item.model, item.image, item.node_class)):
        items = list(group)
        gangs = ", ".join(dict.fromkeys(gang for item in items for gang in item.gangs))
        lines.append(f"{model} · image {image[:DIGEST_SHOWN]} · {node_class} ({gangs})")
        width = max(len(_name(item)) for item in items) + 2
        lines += [f"  {_line(item, width)}" for item in items]
    return "".join(f"{one_line(line)}\n" for line in lines)


def _name(item: Known) -> str:
    return NAMES.get(item.kind, item.kind)


def _line(item: Known, width: int) -> str:
    times = item.expected
    if times.count == 1:
        return f"{_name(item):<{width}}{duration(times.seconds):>8}  once"
    spread = f"{duration(times.low_s)} to {duration(times.high_s)}"
    told = f"{count(times.count, 'time')}, {spread}; last {duration(item.last_s)}"
    return f"{_name(item):<{width}}{duration(times.seconds):>8}  {told}"
