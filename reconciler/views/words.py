"""Figures in people's words: durations, sizes, counts; and text from outside made fit for a line."""

from collections.abc import Sequence

from reconciler.core.durations import Expected
from reconciler.core.estimates import Dark
from reconciler.core.figures import duration, size

__all__ = [
    "boot_time",
    "count",
    "dark_time",
    "duration",
    "expected_dark_time",
    "one_line",
    "shortened",
    "size",
    "spread",
]


def one_line(text: str) -> str:
    """Text from outside on one line: what could move a cursor or fake a line is spelled out, as "\\n" or "\\x1b"."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def shortened(text: str, limit: int) -> str:
    """At most `limit` characters."""
    return text if len(text) <= limit else f"{text[: limit - 3]}..."


def count(number: int, noun: str) -> str:
    """1 -> "1 node", 3 -> "3 nodes"."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def dark_time(boots: Sequence[float] | None, stop_s: float, budget_s: float) -> str:
    """How long nothing answers: stopping what runs, then booting what takes its place."""
    return f"{boot_time(boots, budget_s)}, after up to {duration(stop_s)} to stop what runs"


def expected_dark_time(dark: Dark, stop_s: float, budget_s: float) -> str:
    """The same from what earlier times of this image, model and kind of node tell; the boot is named by itself."""
    if dark.boot is None or dark.seconds is None:
        return dark_time((), stop_s, budget_s)
    parts = [f"boot {duration(dark.boot.seconds)}"]
    parts += [f"stop {duration(dark.stop.seconds)}"] if dark.stop is not None else []
    parts += [f"free memory {duration(dark.room.seconds)}"] if dark.room is not None and dark.room.seconds >= 1 else []
    after = "" if dark.stop is not None else f", after up to {duration(stop_s)} to stop what runs"
    return f"about {duration(dark.seconds)} ({', '.join(parts)}; {spread(dark.boot)}){after}"


def spread(found: Expected) -> str:
    """ "the last five took 2m58s to 3m41s"."""
    if found.count == 1:
        return "as the last time"
    number = NUMBERS.get(found.count, str(found.count))
    return f"the last {number} took {duration(found.low_s)} to {duration(found.high_s)}"


NUMBERS = {2: "two", 3: "three", 4: "four", 5: "five"}


def boot_time(boots: Sequence[float] | None, budget_s: float) -> str:
    """How long a boot is expected to take, and where the figure comes from. None: nobody looked into the record."""
    if boots is None:
        return f"at most {duration(budget_s)} (its boot budget)"
    if not boots:
        return f"at most {duration(budget_s)} (its boot budget; no boot is recorded yet)"
    middle = sorted(boots)[len(boots) // 2]
    if len(boots) == 1:
        return f"about {duration(middle)} (as the last boot)"
    return (
        f"about {duration(middle)} (the last {len(boots)} boots took {duration(min(boots))} to {duration(max(boots))})"
    )
