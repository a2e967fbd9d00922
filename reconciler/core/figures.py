"""Figures in people's words, for the sentences that the core itself makes."""


def size(count: int) -> str:
    """Bytes with a binary unit: 15246417152 -> "14.2 GiB"."""
    value = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if round(value, 1) < 1024:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} TiB"
