"""Docker's times: RFC 3339 texts, to a billionth of a second."""

import math
from datetime import datetime

EARLIER_S = 1.0
"""A container's first lines are older than the time at which the engine notes that it has started."""


def epoch_s(text: str) -> float:
    """Seconds since 1970 (UTC). Raises ValueError for what is no time."""
    return datetime.fromisoformat(text).timestamp()


def since_param(started_at: str, finished_at: str) -> str:
    """From when on the log is that of the life that began at `started_at`, as Docker's API wants it in a question.

    `finished_at`: the end of the life before, where it is an earlier time. Its last lines are read a moment after it,
    and the first ones of the next life a moment before that has started: the middle between the two parts them.
    """
    start_s, end_s = epoch_s(started_at), epoch_s(finished_at) if finished_at else -math.inf
    begin_s = max(start_s - EARLIER_S, (start_s + end_s) / 2) if end_s < start_s else start_s - EARLIER_S
    return f"{begin_s:.6f}"
