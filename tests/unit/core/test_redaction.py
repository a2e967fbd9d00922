"""Values of secrets are taken out of texts in every spelling that programs commonly give them."""

import base64
import json
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.core.redaction import REDACTED, SHORTEST_HIDDEN, redactor

POISON = 'poison/"5e c\\ret+é'


def hidden(text: str, **values: str) -> str:
    return redactor(values.items())(text)


def test_values_are_taken_out_wherever_they_stand() -> None:
    text = "TOKEN=poison-1234 and other-secret, poison-1234"
    assert "TOKEN=[redacted] and [redacted], [redacted]" == hidden(text, A="poison-1234", B="other-secret")


def test_a_value_within_another_leaves_nothing_of_the_longer_one() -> None:
    assert "[redacted]" == hidden("secret-and-more", A="secret", B="secret-and-more")


@pytest.mark.parametrize(
    "spelling",
    [
        json.dumps(POISON),
        json.dumps(POISON, ensure_ascii=False),
        quote(POISON),
        quote(POISON, safe=""),
        quote_plus(POISON),
        quote(POISON, safe="")
        .replace("%2F", "%2f")
        .replace("%5C", "%5c")
        .replace("%2B", "%2b")
        .replace("%C3%A9", "%c3%a9"),
        repr(POISON),
        repr(POISON.encode()),
        base64.b64encode(POISON.encode()).decode(),
        base64.urlsafe_b64encode(POISON.encode()).decode().rstrip("="),
    ],
)
def test_every_spelling_is_taken_out(spelling: str) -> None:
    told = hidden(f"got {spelling}, good bye", TOKEN=POISON)
    assert REDACTED in told
    assert spelling.strip("\"'b=")[2:-2] not in told
    assert told.endswith("good bye")


@given(st.binary(max_size=5), st.binary(max_size=5))
def test_base64_of_a_longer_text_tells_nothing_of_the_value_in_it(before: bytes, behind: bytes) -> None:
    value = "poison-5ecret-1234"
    coded = base64.b64encode(before + value.encode() + behind).decode()
    told = hidden(coded, TOKEN=value)
    left = base64.b64decode(told.partition(REDACTED)[0] + "==="[: -len(told.partition(REDACTED)[0]) % 4])
    assert REDACTED in told
    assert len(left) <= len(before) + 1


def test_lines_of_a_value_are_taken_out_each() -> None:
    key = "-----BEGIN KEY-----\nMIIEvQIBADANBg\n-----END KEY-----"
    assert ["[redacted]"] * 3 == [hidden(line, KEY=key) for line in key.splitlines()]


@pytest.mark.parametrize("text", ["PIN=1234", "PIN: 1234", '{"PIN": "1234"}', "('PIN', '1234')", "export PIN='1234'"])
def test_a_short_value_is_taken_out_behind_the_name_of_its_variable(text: str) -> None:
    assert text.replace("1234", REDACTED) == hidden(text, PIN="1234")


@pytest.mark.parametrize("text", ["exit 1234", "port 12345", "PIN=12345", "APIN=1234", "1234"])
def test_a_short_value_stays_elsewhere(text: str) -> None:
    assert len("1234") < SHORTEST_HIDDEN
    assert text == hidden(text, PIN="1234")


def test_nothing_to_hide_hides_nothing() -> None:
    assert "a text" == hidden("a text")
    assert "a text" == hidden("a text", EMPTY="")


@given(st.text(min_size=SHORTEST_HIDDEN, max_size=40), st.text(max_size=40), st.text(max_size=40))
def test_no_value_is_left_in_any_text(value: str, before: str, behind: str) -> None:
    assert value not in hidden(before + value + behind, TOKEN=value).replace(REDACTED, "")
