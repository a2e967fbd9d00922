"""Figures in people's words, and text from outside made fit for a line."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.views.words import boot_time, count, dark_time, duration, one_line, shortened, size

DURATIONS = [
    (0, "0s"),
    (0.04, "0s"),
    (0.1, "0.1s"),
    (2.345, "2.3s"),
    (2.96, "3s"),
    (59.97, "1m"),
    (59.4, "59.4s"),
    (60, "1m"),
    (90.4, "1m30s"),
    (119.7, "2m"),
    (3599, "59m59s"),
    (3599.6, "1h"),
    (3600, "1h"),
    (7200, "2h"),
    (5430, "1h30m"),
    (90000, "25h"),
]


@pytest.mark.parametrize(("seconds", "expected"), DURATIONS)
def test_duration(seconds: float, expected: str) -> None:
    assert expected == duration(seconds)


SIZES = [
    (0, "0 B"),
    (1023, "1023 B"),
    (1024, "1.0 KiB"),
    (1_048_575, "1.0 MiB"),
    (2**20, "1.0 MiB"),
    (15_246_417_152, "14.2 GiB"),
    (2**40, "1.0 TiB"),
    (5000 * 2**40, "5000.0 TiB"),
]


@pytest.mark.parametrize(("number", "expected"), SIZES)
def test_size(number: int, expected: str) -> None:
    assert expected == size(number)


@pytest.mark.parametrize(("number", "expected"), [(0, "0 nodes"), (1, "1 node"), (2, "2 nodes")])
def test_count(number: int, expected: str) -> None:
    assert expected == count(number, "node")


BOOTS = [
    ((), "at most 40m (its boot budget; no boot is recorded yet)"),
    ((200.0,), "about 3m20s (as the last boot)"),
    ((221.0, 178.0, 200.0), "about 3m20s (the last 3 boots took 2m58s to 3m41s)"),
]


@pytest.mark.parametrize(("boots", "expected"), BOOTS)
def test_how_long_a_boot_takes_and_where_the_figure_is_from(boots: tuple[float, ...], expected: str) -> None:
    assert expected == boot_time(boots, 2400)


def test_how_long_nothing_answers() -> None:
    assert "about 3m20s (as the last boot), after up to 30s to stop what runs" == dark_time((200.0,), 30, 2400)


LINES = [
    ("plain ä€😀", "plain ä€😀"),
    ("two\nlines\r\tx", "two\\nlines\\r\\tx"),
    ("\x1b[31mred\x07", "\\x1b[31mred\\x07"),
    ("\u202etxt.exe\u2028", "\\u202etxt.exe\\u2028"),
    ("half \ud800 pair", "half \\ud800 pair"),
]


@pytest.mark.parametrize(("text", "expected"), LINES)
def test_one_line(text: str, expected: str) -> None:
    assert expected == one_line(text)


@given(st.text())
def test_any_text_becomes_one_line_that_prints(text: str) -> None:
    assert one_line(text).isprintable()


@given(st.text(), st.integers(3, 50))
def test_shortened_text_is_short_and_begins_as_it_did(text: str, limit: int) -> None:
    short = shortened(text, limit)
    assert len(short) <= limit
    assert text.startswith(short.removesuffix("...") if len(text) > limit else short)


def test_where_the_record_was_not_looked_into_it_is_not_called_empty() -> None:
    assert "at most 40m (its boot budget), after up to 30s to stop what runs" == dark_time(None, 30, 2400)
