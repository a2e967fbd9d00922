"""Docker's log stream -> lines. Pure.

Without a terminal, stdout and stderr come mixed in frames: one byte for the stream, three of padding, four for the
length, then that many bytes. With a terminal there are no frames.
"""

import re
import struct

HEADER = struct.Struct(">BxxxL")
LINE_END = re.compile(rb"\r\n|\n|\r(?!$)")
"""A progress bar redraws its line after a lone CR: each state is a line, or a long bar would look like a stall."""

LONGEST_LINE = 1 << 18
"""Bytes. What goes on without a line end comes in pieces: kept whole it would take all memory, and all time."""


class LogLines:
    """Takes the bytes as they come and gives the lines that are complete."""

    def __init__(self, framed: bool) -> None:
        self._framed = framed
        self._unread = b""
        self._open: dict[int, bytes] = {}

    def feed(self, data: bytes) -> list[str]:
        """The lines that `data` completes."""
        if not self._framed:
            return self._lines(1, data)
        self._unread += data
        lines: list[str] = []
        at = 0
        while (end := self._end_of_frame(at)) is not None:
            lines += self._lines(self._unread[at], self._unread[at + HEADER.size : end])
            at = end
        self._unread = self._unread[at:]
        return lines

    def rest(self) -> list[str]:
        """What was left without a line end when the stream ended."""
        left = [text.rstrip(b"\r").decode(errors="replace") for text in self._open.values() if text.strip()]
        self._open.clear()
        return left

    def _end_of_frame(self, at: int) -> int | None:
        """Where the frame that begins at `at` ends; None when it is not whole yet."""
        if len(self._unread) < at + HEADER.size:
            return None
        _, length = HEADER.unpack_from(self._unread, at)
        end: int = at + HEADER.size + length
        return None if len(self._unread) < end else end

    def _lines(self, stream: int, data: bytes) -> list[str]:
        *whole, rest = LINE_END.split(self._open.get(stream, b"") + data)
        if len(rest) > LONGEST_LINE:
            whole, rest = [*whole, rest], b""
        self._open[stream] = rest
        return [line.decode(errors="replace") for line in whole]


def split(data: bytes, framed: bool) -> list[str]:
    """All lines of a finished log."""
    lines = LogLines(framed)
    return lines.feed(data) + lines.rest()
