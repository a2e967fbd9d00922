"""Whether a generated text is junk, told by its letters alone, and what is wrong with it.

A model with wrongly loaded weights answers fluently in status codes and in nonsense otherwise: letters of many scripts
at once, one piece again and again, characters without any order. Limits are wide: they are about nonsense, not quality.
"""

import math
import unicodedata
from collections import Counter
from collections.abc import Collection, Sequence
from functools import lru_cache

from reconciler.core.probes import Limits

LONGEST_TEXT = 20_000
"""Characters that are looked at."""

FEWEST_LETTERS = 8
FEWEST_CHARACTERS = 32
"""Of less, shares and entropies say nothing."""

SAID_OFTEN = 8
LONGEST_PHRASE = 8
"""Words, or characters where there are no words: a phrase is junk when it comes eight times in a row or more."""

WITHOUT_ALPHABET = frozenset({"Han", "Hangul", "Hiragana", "Katakana", "Ethiopic"})
"""Scripts of so many characters that nearly each one of a short text is new."""

_OF_NAMES = {"cjk": "Han", "ideographic": "Han", "kangxi": "Han"}
_COMMON = frozenset({"mathematical", "modifier", "double-struck", "script", "black-letter", "micro", "ohm", "feminine"})
_WIDTHS = ("fullwidth ", "halfwidth ")


def junk(text: str, scripts: Collection[str], limits: Limits) -> str | None:
    """What makes the text junk, as the end of a sentence that begins with "it"; None when nothing does."""
    text = text[:LONGEST_TEXT]
    return _foreign(text, scripts, limits.foreign) or _repeated(text, limits.repetition) or _odd(text, scripts, limits)


def scripts_of(text: str) -> frozenset[str]:
    """The scripts of a text's letters."""
    return frozenset(_count(text))


@lru_cache(maxsize=4096)
def script_of(letter: str) -> str | None:
    """The script of a letter by Unicode's name of it; None of what is no letter, or of no script of its own."""
    if not letter.isalpha():
        return None
    name = unicodedata.name(letter, "").lower()
    for width in _WIDTHS:
        name = name.removeprefix(width)
    first = name.partition(" ")[0]
    return None if not first or first in _COMMON else _OF_NAMES.get(first, first.capitalize())


def _count(text: str) -> Counter[str]:
    return Counter(script for letter in text if (script := script_of(letter)) is not None)


def _foreign(text: str, scripts: Collection[str], at_most: float) -> str | None:
    found = _count(text)
    letters = found.total()
    outside = {script: count for script, count in found.items() if script not in scripts}
    if letters < FEWEST_LETTERS or sum(outside.values()) <= at_most * letters:
        return None
    names = sorted(outside, key=lambda script: (-outside[script], script))
    share = round(100 * sum(outside.values()) / letters)
    expected = f"only {', '.join(sorted(scripts))} {'is' if len(scripts) == 1 else 'are'} expected"
    return f"{share} % of its letters are {' or '.join(names[:3])}, {expected}"


def _repeated(text: str, at_most: float) -> str | None:
    for units, joint in ((text.split(), " "), (tuple("".join(text.split())), "")):
        phrase, times, share = _longest_run(units, joint)
        if times >= SAID_OFTEN and len(phrase) * times >= FEWEST_CHARACTERS / 2 and share > at_most:
            return f"{phrase!r} comes {times} times in a row"
    return None


def _longest_run(units: Sequence[str], joint: str) -> tuple[str, int, float]:
    """The phrase that fills most of the text by coming again and again, how often, and the share that it fills.

    Of a phrase of n units, each is the one n before it: one pass for each n finds the longest such run.
    """
    best = ("", 0, 0.0)
    for size in range(1, LONGEST_PHRASE + 1):
        run = longest = end = 0
        for at in range(size, len(units)):
            run = run + 1 if units[at] == units[at - size] else 0
            if run > longest:
                longest, end = run, at + 1
        share = (longest + size) / len(units) if longest else 0.0
        if share > best[2]:
            best = joint.join(units[end - size : end]), longest // size + 1, share
    return best


def _odd(text: str, scripts: Collection[str], limits: Limits) -> str | None:
    if len(text) < FEWEST_CHARACTERS:
        return None
    bits = _entropy(text)
    if bits < limits.entropy_min:
        return f"it has {bits:.1f} bits a character, at least {limits.entropy_min:g} are expected"
    if bits > limits.entropy_max and not WITHOUT_ALPHABET & set(scripts):
        return f"it has {bits:.1f} bits a character, at most {limits.entropy_max:g} are expected"
    return None


def _entropy(text: str) -> float:
    counts = Counter(text)
    return -sum(count / len(text) * math.log2(count / len(text)) for count in counts.values())
