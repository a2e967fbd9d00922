"""How far a boot is, from what the ranks say in their logs and what the API answers. Pure.

An engine's phases and the lines that end all hope are patterns of `reconciler.engines`; here they are only applied. A
boot never goes back: what comes late from a slower rank, or a second time, changes nothing.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from reconciler.core.figures import duration

LONGEST_LINE = 1000
"""Characters of a line that are looked at."""

FIRST, API, TOKEN, ANSWER = "image", "api", "first token", "right answer"

WORDS = {
    FIRST: "starting",
    "weights": "loading weights",
    "load": "setting up the model",
    "compile": "compiling and tuning",
    "capture": "capturing graphs",
    API: "opening the API",
    TOKEN: "waiting for a first token",
    ANSWER: "being asked",
}
"""What a gang does in each phase, in order, for people."""

ORDER = tuple(WORDS)


@dataclass(frozen=True)
class LogRules:
    """What an engine's log lines mean: with which a phase begins (name, pattern), after which no boot can succeed."""

    phases: tuple[tuple[str, str], ...] = ()
    fatal: tuple[str, ...] = ()


@dataclass(frozen=True)
class Boot:
    """The phase a boot is in, since when (seconds of the caller's clock), and how long each earlier one took."""

    phase: str
    since_s: float
    took: tuple[tuple[str, float], ...] = ()

    def at(self, phase: str, now_s: float) -> "Boot":
        """The boot once it has reached a phase; itself when that is not further on."""
        if ORDER.index(phase) <= ORDER.index(self.phase):
            return self
        return Boot(phase, now_s, self.until(now_s))

    def until(self, now_s: float) -> tuple[tuple[str, float], ...]:
        """Every phase that it has reached, in order, and the seconds it took up to now."""
        return (*self.took, (self.phase, now_s - self.since_s))

    def told(self, now_s: float, usual: Mapping[str, float]) -> str:
        """ "loading weights 3m12s, usually 4m"."""
        expected = usual.get(self.phase)
        more = "" if expected is None else f", usually {duration(round(expected))}"
        return f"{WORDS[self.phase]} {duration(round(now_s - self.since_s))}{more}"


def reached(rules: LogRules, lines: Iterable[str]) -> str:
    """The last phase that these lines tell of; the first one when they tell of none."""
    texts = [line[:LONGEST_LINE] for line in lines]
    told = (name for name, pattern in rules.phases if any(re.search(pattern, text) for text in texts))
    return max(told, key=ORDER.index, default=FIRST)


def fatal_line(rules: LogRules, lines: Iterable[str]) -> str | None:
    """The first line after which the boot cannot succeed; None when there is none."""
    for line in lines:
        text = line[:LONGEST_LINE]
        if any(re.search(pattern, text) for pattern in rules.fatal):
            return text.strip()
    return None


MEMORY_MOVES = 256 * 2**20
DISK_MOVES = 64 * 2**20
"""Bytes. Less comes and goes on a node where nothing happens."""


@dataclass(frozen=True)
class Signs:
    """Signs of life of one rank: the last line it said, and free memory and disk of its node (bytes, None: unknown)."""

    line: str = ""
    memory_bytes: int | None = None
    disk_bytes: int | None = None

    def moved(self, now: "Signs") -> bool:
        """Whether `now` shows progress since these were seen. What cannot be read now shows none."""
        return (
            now.line not in ("", self.line)
            or _differ(self.memory_bytes, now.memory_bytes, MEMORY_MOVES)
            or _differ(self.disk_bytes, now.disk_bytes, DISK_MOVES)
        )

    def then(self, now: "Signs") -> "Signs":
        """What the next look is compared with: a level stays until it has moved far enough, so that a creep counts."""
        return replace(
            self,
            line=now.line or self.line,
            memory_bytes=_level(self.memory_bytes, now.memory_bytes, MEMORY_MOVES),
            disk_bytes=_level(self.disk_bytes, now.disk_bytes, DISK_MOVES),
        )


def _differ(before: int | None, now: int | None, least: int) -> bool:
    return before is not None and now is not None and abs(now - before) >= least


def _level(before: int | None, now: int | None, least: int) -> int | None:
    return now if before is None or _differ(before, now, least) else before
