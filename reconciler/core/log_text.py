"""What an engine printed, made fit to be shown and kept: no control codes, no endless lines, no endless many."""

import re
from collections.abc import Sequence

LINE_LENGTH = 400
"""Characters of a line that are shown: of a trace enough, of a dumped tensor more than enough."""

SHOWN = 20
"""Lines that are shown of a failure."""

_ESCAPE = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[PX^_][^\x1b]*(?:\x1b\\)?|[ -/]*[0-~])"
)
"""Sequences of ECMA-48: colours and cursor moves, titles and links, strings, and the short ones."""

_CONTROL = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""Controls, line separators, and what turns the direction of a text around."""


def readable(line: str, longest: int = LINE_LENGTH) -> str:
    """The line without what would act on a terminal, cut to `longest` characters; says how long it was."""
    shown = _CONTROL.sub("\ufffd", _ESCAPE.sub("", line[: longest * 4])).replace("\t", " ").rstrip()
    if len(shown) <= longest and len(line) <= longest * 4:
        return shown
    return f"{shown[:longest]}... ({len(line)} characters)"


def last_lines(lines: Sequence[str], most: int = SHOWN) -> tuple[str, ...]:
    """The last `most` lines that say something, each readable."""
    said = [line for line in map(readable, lines[-most * 4 :]) if line]
    return tuple(said[-most:])
