"""Docker's log stream -> lines. Pure.

Without a terminal, stdout and stderr come mixed in frames: one byte for the stream, three of padding, four for the
length, then that many bytes. With a terminal there are no frames.
"""

import re
import struct

HEADER = struct.Struct(">BxxxL")
LINE_END = re.compile(rb"\r\n|\n|\r(?!$)")
"""A progress bar redraws its line after a lone CR: each state is a line, or a long bar would look like a stall."""


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
        while (frame := self._frame()) is not None:
            lines += self._lines(*frame)
        return lines

    def rest(self) -> list[str]:
        """What was left without a line end when the stream ended."""
        left = [text.rstrip(b"\r").decode(errors="replace") for text in self._open.values() if text.strip()]
        self._open.clear()
        return left

    def _frame(self) -> tuple[int, bytes] | None:
        if len(self._unread) < HEADER.size:
            return None
        stream, length = HEADER.unpack_from(self._unread)
        end = HEADER.size + length
        if len(self._unread) < end:
            return None
        body, self._unread = self._unread[HEADER.size : end], self._unread[end:]
        return stream, body

    def _lines(self, stream: int, data: bytes) -> list[str]:
        *whole, self._open[stream] = LINE_END.split(self._open.get(stream, b"") + data)
        return [line.decode(errors="replace") for line in whole]


def split(data: bytes, framed: bool) -> list[str]:
    """All lines of a finished log."""
    lines = LogLines(framed)
    return lines.feed(data) + lines.rest()
