"""Medians of two alternating measurements."""

import re
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

ROUNDS = 9


@dataclass(frozen=True)
class Measured:
    """What was measured of ours and of the baseline, in seconds or bytes; `unit` is how people are shown it."""

    name: str
    goal: float
    baseline: str
    ours: float
    other: float
    unit: str = "s"

    @property
    def ratio(self) -> float:
        """Ours divided by the baseline."""
        return self.ours / self.other


def seconds(work: Callable[[], object]) -> float:
    """Wall time of one call."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def compare(
    name: str, goal: float, baseline: str, ours: Callable[[], object], other: Callable[[], object], rounds: int = ROUNDS
) -> Measured:
    """Both in turn, `rounds` times after one unmeasured warm-up each, so that noise hits both alike."""
    ours()
    other()
    times = [(seconds(ours), seconds(other)) for _ in range(rounds)]
    return Measured(
        name, goal, baseline, statistics.median(a for a, _ in times), statistics.median(b for _, b in times), "ms"
    )


def peak_bytes(process: int | str) -> int:
    """Peak memory of a process so far, by id or "self". (`ru_maxrss` would begin with that of whoever started it.)

    Raises `OSError` when there is no such process.
    """
    found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{process}/status").read_text(encoding="utf-8"))
    return int(found[1]) * 1024 if found else 0
