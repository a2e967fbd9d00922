"""Names and values from outside cannot break Markdown; no length hides a delete or a refusal."""

import re
import time
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.core.plan import Refusal
from reconciler.views.markdown import cell, code
from reconciler.views.plan_markdown import BUDGET, plan_markdown
from reconciler.views.plan_text import plan_text
from tests.unit.views import scenes

SIGNS = st.text(st.sampled_from("ab|\\`<>&[]()*_~@#1 \n\r\x1b\u2028!"), max_size=12)


def cells(row: str) -> list[str]:
    """The cells of a table row as GitHub splits it: a backslash takes the sign after it out of play."""
    assert "\n" not in row
    parts = re.findall(r"((?:\\.|[^|\\])*)\|", row)
    return [part.strip() for part in parts[1:]]


@given(SIGNS, SIGNS)
def test_no_text_adds_or_takes_a_cell(one: str, two: str) -> None:
    assert 3 == len(cells(f"| {cell(one)} | {code(two)} | x |"))


@given(SIGNS)
def test_a_code_span_ends_where_it_should(text: str) -> None:
    span = code(text)
    assert "`" not in span[1:-1]
    assert ("" == span) == ("" == text)


CELLS = [
    ("plain: 2m, a-b.c", "plain: 2m, a-b.c"),
    ("a|b", "a\\|b"),
    ("a\\|b", "a\\\\\\|b"),
    ("<b>&", "&lt;b&gt;&amp;"),
    ("[x](y) ![z](w)", "\\[x\\](y) !\\[z\\](w)"),
    ("*a* _b_ ~~c~~ `d`", "\\*a\\* \\_b\\_ \\~\\~c\\~\\~ 'd'"),
    ("two\nlines\r\nthree", "two lines three"),
    ("@all, see #1", "@&#8203;all, see #&#8203;1"),
    ("ghcr.io/x@sha256:ab", "ghcr.io/x@sha256:ab"),
    ("\x1b[0m", "\\\\x1b\\[0m"),
]


@pytest.mark.parametrize(("text", "expected"), CELLS)
def test_cell(text: str, expected: str) -> None:
    assert expected == cell(text)


CODES = [("a|b", "`a\\|b`"), ("a\\|b", "`a\\ \\|b`"), ("a`b", "`a'b`"), ("<b>\n", "`<b>\\n`"), ("", "")]


@pytest.mark.parametrize(("text", "expected"), CODES)
def test_code(text: str, expected: str) -> None:
    assert expected == code(text)


def table(text: str) -> list[list[str]]:
    return [cells(line) for line in text.splitlines() if line.startswith("|")]


def test_hostile_names_leave_a_plan_with_its_table_and_one_details_block() -> None:
    text = plan_markdown(scenes.hostile(), {})
    assert {5} == {len(row) for row in table(text)}
    assert 2 == text.count("```")
    assert ["### fleet plan: lab"] == [line for line in text.splitlines() if line.startswith("#")]
    assert "\x1b" not in text
    assert "<b>" not in text.split("<details>")[0].replace("`", "").split("| what |")[0]


def test_a_plan_with_300_changed_lanes_shows_every_delete_and_refusal_first() -> None:
    made = scenes.large(300)
    text = plan_text(made, {})
    assert text.index("x c/zz-refused") < text.index("- stop    c/zzz-gone") < text.index("~ replace")
    for change in made.changes:
        assert f" {change.gang} " in text
    assert text.count("~ replace") == 300


def test_a_plan_with_300_changed_lanes_fits_a_comment_and_its_first_rows_are_the_deletes() -> None:
    made = scenes.large(300)
    text = plan_markdown(made, {})
    assert len(text) <= BUDGET
    assert "- **refused** `c/zz-refused`" in text
    rows = table(text)
    assert "`c/zzz-gone`" == rows[2][1]
    assert len(made.changes) == len(rows) - 2
    assert text.endswith("</details>\n")


def test_what_does_not_fit_a_comment_is_counted_and_deletes_are_the_last_to_go() -> None:
    made = scenes.large(900)
    text = plan_markdown(made, {})
    assert len(text) <= BUDGET
    left = re.search(r"\*\*(\d+) more lines do not fit here; `fleet plan` shows them.\*\*", text)
    assert left is not None
    assert len(made.changes) == len(table(text)) - 2 + int(left[1])
    assert "`c/zzz-gone`" in text


def test_refusals_beyond_every_budget_are_counted() -> None:
    many = tuple(Refusal("x", f"c/lane{number}", None, "w" * 5000) for number in range(500))
    text = plan_markdown(replace(scenes.refused(), refusals=many), {})
    assert len(text) <= BUDGET
    shown = text.split("<details>")[0].count("- **refused**")
    left = re.search(r"\*\*(\d+) more lines", text)
    assert left is not None
    assert shown > 50
    assert int(left[1]) >= 500 - shown


def test_a_large_plan_is_rendered_in_a_moment() -> None:
    made = scenes.large(300)
    began_s = time.perf_counter()
    plan_text(made, {})
    plan_markdown(made, {})
    assert time.perf_counter() - began_s < 2


def test_a_lane_that_makes_room_for_two_is_told_in_both_outages() -> None:
    text = plan_text(scenes.split(), {})
    assert 1 == text.count("makes room for c/pair, c/solo")
    assert "  - stop    all/quad  as above" in text
