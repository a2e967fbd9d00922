"""Figures in people's words: durations, sizes, counts."""

from collections.abc import Sequence


def duration(seconds: float) -> str:
    """90.4 -> "1m30s", 2.345 -> "2.3s", 7200 -> "2h"."""
    if seconds < 60:
        return f"{seconds:.1f}s" if seconds % 1 >= 0.05 else f"{seconds:.0f}s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    parts = [f"{hours}h" if hours else "", f"{minutes}m" if minutes else "", f"{rest}s" if rest and not hours else ""]
    return "".join(parts)


def size(count: int) -> str:
    """Bytes with a binary unit: 15246417152 -> "14.2 GiB"."""
    value = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} TiB"


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
