"""How far a transfer is, as whoever carries it out tells."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Progress:
    """Bytes moved so far of a known total (None while unknown) and what is being done now, for people.

    `via`: the way the bytes come, for people ("relayed by dgx1"); empty where there is nothing to say of it.
    """

    done_bytes: int
    total_bytes: int | None
    doing: str = ""
    via: str = ""


OnProgress = Callable[[Progress], None]
