"""What is wrong with a spec, where, why, and what to do about it."""

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from pydantic_core import PydanticCustomError

MAX_TEXT = 1000  # characters of a summary, detail or hint


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """A position in a file; line and column count from 1, columns in characters. Line 0 is the file as a whole."""

    path: Path
    line: int = 1
    column: int = 1

    def __str__(self) -> str:
        return f"{self.path}:{self.line}:{self.column}" if self.line else str(self.path)


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One fault of a spec. `line` and `column` count from 1, columns in characters; both are 0 for a whole file.

    `summary` says what is wrong, `detail` why, `hint` what to do; the last two may be empty.
    """

    path: Path
    line: int
    column: int
    summary: str
    detail: str = ""
    hint: str = ""

    @classmethod
    def at(cls, place: Place, summary: str, detail: str = "", hint: str = "") -> "Diagnostic":
        """Return the diagnostic of a fault at `place`, with each text made fit for a terminal."""
        return cls(place.path, place.line, place.column, _shown(summary, keep=""), _shown(detail), _shown(hint))

    @property
    def place(self) -> Place:
        """Where the fault is."""
        return Place(self.path, self.line, self.column)

    def to_dict(self) -> dict[str, str | int]:
        """Return the diagnostic as a JSON object."""
        return {
            "path": str(self.path),
            "line": self.line,
            "column": self.column,
            "summary": self.summary,
            "detail": self.detail,
            "hint": self.hint,
        }

    def __str__(self) -> str:
        notes = [line for note in (self.detail, self.hint) for line in note.splitlines()]
        return "\n    ".join([f"{self.place}: {self.summary}", *notes])


def _shown(text: str, keep: str = "\n") -> str:
    """Return a text that may repeat what a user wrote: cut, and with control characters spelled out."""
    if not text.isprintable():
        text = "".join(c if c.isprintable() or c in keep else ascii(c)[1:-1] for c in text[:MAX_TEXT])
    return text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}..."


class SpecErrors(Exception):  # noqa: N818 - it carries many errors
    """A spec cannot be used. `diagnostics` holds every fault of every file, sorted by file and line."""

    def __init__(self, diagnostics: Iterable[Diagnostic]) -> None:
        ordered = sorted(set(diagnostics), key=lambda d: (d.place, d.summary, d.detail, d.hint))
        self.diagnostics: tuple[Diagnostic, ...] = tuple(ordered)
        super().__init__(self.diagnostics)

    def __str__(self) -> str:
        return "\n".join(map(str, self.diagnostics))


def refuse(summary: str, detail: str = "", hint: str = "", below: tuple[str | int, ...] = ()) -> PydanticCustomError:
    """Return the error a validator raises to refuse a value; its three texts reach the diagnostic as they are.

    `below` leads from the value to the part of it that is at fault.
    """
    context = {"summary": summary, "detail": detail, "hint": hint, "below": below}
    return PydanticCustomError("refused", "{summary}", context)


def wanted(what: str) -> PydanticCustomError:
    """Return the error a validator raises for a value of the wrong type; `what` is the right one in YAML's words."""
    return PydanticCustomError("wanted", "wants {what}", {"what": what})


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return "did you mean 'x'?" for the closest of `known`, else an empty text."""
    # difflib is quadratic in the length of the words; no name we know is longer than this.
    close = difflib.get_close_matches(word[:100], sorted(known), n=1)
    return f"did you mean '{close[0]}'?" if close else ""


def listing(words: Iterable[str], limit: int = 12) -> str:
    """Return the words in order, comma-separated, cut after `limit` of them."""
    ordered = sorted(words)
    more = [f"and {len(ordered) - limit} more"] if len(ordered) > limit else []
    return ", ".join(ordered[:limit] + more)
