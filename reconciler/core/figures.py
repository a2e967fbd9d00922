"""Figures in people's words, for the sentences that the core itself makes."""


def size(count: int) -> str:
    """Bytes with a binary unit: 15246417152 -> "14.2 GiB"."""
    value = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if round(value, 1) < 1024:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} TiB"


def duration(seconds: float) -> str:
    """90.4 -> "1m30s", 2.345 -> "2.3s", 7200 -> "2h"."""
    tenths = round(seconds, 1)
    if tenths < 60:
        return f"{tenths:g}s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    parts = [f"{hours}h" if hours else "", f"{minutes}m" if minutes else "", f"{rest}s" if rest and not hours else ""]
    return "".join(parts)
