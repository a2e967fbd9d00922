"""What makes a generated text junk: letters of scripts nobody expects, one piece for ever, no order at all."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.core.junk import junk, script_of, scripts_of
from reconciler.core.probes import Limits

LATIN = frozenset({"Latin"})
ANY = Limits(foreign=1.0, repetition=1.0, entropy_min=0.0, entropy_max=32.0)

MATHEMATICS = "\U0001d499 and \U0001d49a are real numbers"

SENSE = [
    ("an answer", "The capital of France is Paris.", LATIN),
    ("with accents", "La capitale de la France est Paris, à côté de Saint-Denis.", LATIN),
    ("one word", "Paris", LATIN),
    ("a number", "4", LATIN),
    ("a formula", "The area is π·r², so for r = 2 it is about 12.57; Δx is the step and µ the mean.", LATIN),
    ("a foreign word", "Paris; in Chinese it is written 巴黎, as every dictionary will tell.", LATIN),
    ("Cyrillic where it is expected", "Столица Франции — Париж.", LATIN | {"Cyrillic"}),
    (
        "Chinese where it is expected",
        "法国的首都是巴黎。它位于法国北部,塞纳河畔,是欧洲最大的城市之一。",
        LATIN | {"Han"},
    ),
    ("a table", "| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |\n| 5 | 6 |\n| 7 | 8 |", LATIN),
    ("a base model that goes on", "Paris is the capital of France. " * 4, LATIN),
    ("mathematical letters", MATHEMATICS, LATIN),
    ("code", "def f(x):\n    return [item for item in x if item is not None]\n", LATIN),
    ("too little to say", "巴黎", LATIN),
]


@pytest.mark.parametrize(("what", "text", "scripts"), SENSE, ids=[row[0] for row in SENSE])
def test_sense_is_no_junk(what: str, text: str, scripts: frozenset[str]) -> None:
    assert junk(text, scripts, Limits()) is None, what


MULTILINGUAL = "的 capital 法国首都是 ваш 巴黎在的人 の ह的 parler 我们不能 של 可以"

JUNK = [
    (
        "Chinese where nobody expects it",
        "法国的首都是巴黎 ok",
        LATIN,
        "80 % of its letters are Han, only Latin is expected",
    ),
    (
        "many tongues",
        MULTILINGUAL,
        LATIN,
        "66 % of its letters are Han or Cyrillic or Hebrew, only Latin is expected",
    ),
    (
        "with two that are expected",
        MULTILINGUAL,
        LATIN | {"Cyrillic"},
        "58 % of its letters are Han or Hebrew or Devanagari, only Cyrillic, Latin are expected",
    ),
    ("one sign", "!" * 40, LATIN, "'!' comes 40 times in a row"),
    ("one word", "of " * 30, LATIN, "'of' comes 30 times in a row"),
    ("one phrase at the end", "Well, " + "I am not sure " * 12, LATIN, "'I am not sure' comes 12 times in a row"),
    ("pieces without blanks", "Paris" + "ab" * 30, LATIN, "'ab' comes 30 times in a row"),
    (
        "noise",
        "".join(chr(0x21 + (index * 37) % 94) for index in range(94)) + "éèñüßøåæœ",
        LATIN,
        "it has 6.7 bits a character, at most 6 are expected",
    ),
]


@pytest.mark.parametrize(("what", "text", "scripts", "expected"), JUNK, ids=[row[0] for row in JUNK])
def test_junk_is_called_what_it_is(what: str, text: str, scripts: frozenset[str], expected: str) -> None:
    assert expected == junk(text, scripts, Limits()), what


def test_too_little_order_is_told_where_nothing_repeats_whole() -> None:
    """Longer than any phrase that is looked for, and said too seldom."""
    text = ("a" * 60 + "b") * 3
    assert "it has 0.1 bits a character, at least 1 are expected" == junk(text, LATIN, Limits(repetition=1.0))


LETTERS = [
    ("a", "Latin"),
    ("ß", "Latin"),
    ("ａ", "Latin"),  # noqa: RUF001 - full width on purpose
    ("ж", "Cyrillic"),
    ("巴", "Han"),
    ("𠀀", "Han"),
    ("の", "Hiragana"),
    ("ｶ", "Katakana"),
    ("한", "Hangul"),
    ("π", "Greek"),
    ("א", "Hebrew"),
    ("ह", "Devanagari"),
    ("1", None),
    ("!", None),
    ("\U0001d499", None),
    (" ", None),
]


@pytest.mark.parametrize(("letter", "script"), LETTERS)
def test_the_script_of_a_letter(letter: str, script: str | None) -> None:
    assert script == script_of(letter)


@given(st.text(max_size=400), st.sets(st.sampled_from(["Latin", "Han", "Cyrillic"])))
def test_without_limits_nothing_is_junk(text: str, scripts: set[str]) -> None:
    assert junk(text, frozenset(scripts), ANY) is None


@given(st.text(max_size=400))
def test_no_letter_is_foreign_where_all_scripts_of_the_text_are_expected(text: str) -> None:
    found = junk(text, scripts_of(text), Limits(foreign=0.0, repetition=1.0, entropy_min=0.0, entropy_max=32.0))
    assert found is None


@given(st.text(st.characters(categories=["Lo"], max_codepoint=0x9FFF, min_codepoint=0x4E00), min_size=8, max_size=200))
def test_a_text_of_another_script_alone_is_always_foreign(text: str) -> None:
    assert "100 % of its letters are Han, only Latin is expected" == junk(text, LATIN, Limits())


@given(st.from_regex(r"[A-Za-z]{2,20}", fullmatch=True), st.integers(20, 60))
def test_one_word_said_often_enough_is_always_junk(word: str, times: int) -> None:
    assert junk(" ".join([word] * times), LATIN, Limits()) is not None


def test_a_text_without_end_is_judged_by_its_beginning() -> None:
    assert junk("Paris. " + "x" * 10_000_000, LATIN, Limits()) is not None
