"""Log lines as they are shown: nothing in them acts on a terminal, none is endless, and few are kept."""

import pytest

from reconciler.core.log_text import LINE_LENGTH, SHOWN, last_lines, readable

SHOWN_AS = {
    "plain": ("loading weights", "loading weights"),
    "colours": ("\x1b[1;31mERROR\x1b[0m no", "ERROR no"),
    "cursor moves": ("\x1b[2K\x1b[1Gloading 3%", "loading 3%"),
    "a window title": ("\x1b]0;owned\x07text", "text"),
    "a link": ("\x1b]8;;http://x\x1b\\click\x1b]8;;\x1b\\", "click"),
    "bells and backspaces": ("a\x07b\x08c", "a\ufffdb\ufffdc"),
    "tabs": ("a\tb", "a b"),
    "eight-bit controls": ("a\x9b31mb", "a\ufffd31mb"),
    "text turned around": ("ok \u202egnp.exe", "ok \ufffdgnp.exe"),
    "what was no UTF-8": (b"\xff\xfe\x00abc".decode(errors="replace"), "\ufffd\ufffd\ufffdabc"),
    "other scripts": ("не хватает памяти 内存不足", "не хватает памяти 内存不足"),
    "line separators": ("a\u2028b\rc", "a\ufffdb\ufffdc"),
}


@pytest.mark.parametrize("name", SHOWN_AS)
def test_a_line_is_shown_without_what_acts(name: str) -> None:
    line, shown = SHOWN_AS[name]
    assert shown == readable(line)


def test_a_line_of_five_megabytes_is_cut_and_says_how_long_it_was() -> None:
    shown = readable("x" * 5_000_000)
    assert "x" * LINE_LENGTH + "... (5000000 characters)" == shown


def test_a_line_of_only_escapes_does_not_hide_that_it_was_long() -> None:
    assert "... (40000 characters)" == readable("\x1b[0m" * 10_000)


def test_of_many_lines_the_last_are_shown_and_empty_ones_not_counted() -> None:
    lines = [text for number in range(100) for text in (f"line {number}", "", "\x1b[0m")]
    shown = last_lines(lines)
    assert SHOWN == len(shown)
    assert "line 99" == shown[-1]
