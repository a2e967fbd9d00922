"""What the catalogue is made of: how a cause looks in a log, what it means, and what to do about it."""

import re
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True)
class Cause:
    """Why an engine ended. `id` is stable: it is in JSON outputs. `line`: where its log says so, if it does.

    `may_follow`: another rank's end can look like this, too.
    """

    id: str
    title: str
    explanation: str
    mend: str
    line: str = ""
    may_follow: bool = False

    @property
    def told(self) -> str:
        """For people, in one line: what it is, and what to do."""
        return f"{self.title}. {self.mend}"


@dataclass(frozen=True)
class Signature:
    """One cause and its marks. `patterns`: a line that one of them is found in names it.

    Letters count as they are: a pattern that begins with plain text is found many times faster than one of either case.
    `exit_codes`: what its process ends with when no line of the log says more. `may_follow`: another rank's
    end can look like this, too.
    """

    id: str
    title: str
    explanation: str
    mend: str
    patterns: tuple[str, ...] = ()
    exit_codes: tuple[int, ...] = ()
    may_follow: bool = False

    def at(self, line: str) -> Cause:
        """The cause as this line tells of it."""
        return Cause(self.id, self.title, self.explanation, self.mend, line, self.may_follow)

    def found_in(self, text: str) -> Cause | None:
        """The cause with the first line of `text` that names it; None when no line does."""
        begins = [match.start() for mark in self._marks if (match := mark.search(text))]
        return self.at(line_at(text, min(begins))) if begins else None

    @cached_property
    def _marks(self) -> "tuple[re.Pattern[str], ...]":
        return tuple(re.compile(pattern, re.MULTILINE) for pattern in self.patterns)


def line_at(text: str, place: int) -> str:
    """The line of `text` that the character at `place` is in."""
    begin, end = text.rfind("\n", 0, place) + 1, text.find("\n", place)
    return text[begin : end if end >= 0 else len(text)].strip()
