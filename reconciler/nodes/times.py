"""Docker's times: RFC 3339 texts, to a billionth of a second."""

import math
from datetime import datetime

EARLIER_S = 1
"""A container's first lines are older than the time at which the engine notes that it has started."""


def epoch_s(text: str) -> float:
    """Seconds since 1970 (UTC). Raises ValueError for what is no time."""
    return datetime.fromisoformat(text).timestamp()


def since_param(text: str) -> str:
    """A time of Docker's as its API wants it in a question: a whole second of the epoch, never a later one."""
    return str(math.floor(epoch_s(text)) - EARLIER_S)
