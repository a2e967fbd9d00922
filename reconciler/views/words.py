"""Figures in people's words: durations, sizes, counts; and text from outside made fit for a line."""

from collections.abc import Sequence

from reconciler.core.figures import duration, size

__all__ = ["boot_time", "count", "dark_time", "duration", "one_line", "shortened", "size"]


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


def dark_time(boots: Sequence[float], stop_s: float, budget_s: float) -> str:
    """How long nothing answers: stopping what runs, then booting what takes its place."""
    return f"{boot_time(boots, budget_s)}, after up to {duration(stop_s)} to stop what runs"


def boot_time(boots: Sequence[float], budget_s: float) -> str:
    """How long a boot is expected to take, and where the figure comes from."""
    if not boots:
        return f"at most {duration(budget_s)} (its boot budget; no boot is recorded yet)"
    middle = sorted(boots)[len(boots) // 2]
    if len(boots) == 1:
        return f"about {duration(middle)} (as the last boot)"
    return (
        f"about {duration(middle)} (the last {len(boots)} boots took {duration(min(boots))} to {duration(max(boots))})"
    )
