"""Names and values from outside cannot break Markdown; no length hides a delete or a refusal."""

import re
import time
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.core.plan import Change, Deferred, Outage, Plan, Refusal, Withheld
from reconciler.core.plan import Kind as ChangeKind
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


LEFT = re.compile(r"\*\*(\d+) more lines do not fit here; `fleet plan` shows them.\*\*")
BRIEF = re.compile(r"\*\*(\d+) lines are without their reasons here; `fleet plan` shows them.\*\*")


def times(made: Plan, number: int) -> Plan:
    """The plan with its changes so many times, as if the fleet were so large."""
    changes = [replace(item, gang=f"{item.gang}{suffix or ''}") for suffix in range(number) for item in made.changes]
    dark = [replace(item, gang=f"{item.gang}{suffix or ''}") for suffix in range(number) for item in made.outages]
    return replace(made, changes=tuple(changes), outages=tuple(dark))


def found(pattern: re.Pattern[str], text: str) -> int:
    match = pattern.search(text)
    return int(match[1]) if match else 0


def test_reasons_go_before_the_name_of_a_lane_that_goes_dark() -> None:
    made = times(scenes.large(60), 10)
    text = plan_markdown(made, {})
    assert len(text) <= BUDGET
    assert len(made.changes) == len(table(text)) - 2
    assert (0, True) == (found(LEFT, text), found(BRIEF, text) > 100)
    assert "`c/zzz-gone` | zz1 |" in text  # the deletes are the last to lose theirs


def test_what_does_not_fit_a_comment_is_counted_and_deletes_are_the_last_to_go() -> None:
    made = times(scenes.large(100), 30)
    text = plan_markdown(made, {})
    assert len(text) <= BUDGET
    assert len(made.changes) == len(table(text)) - 2 + found(LEFT, text)
    assert found(LEFT, text) > 0
    assert "`c/zzz-gone`" in text
    assert "- **refused** `c/zz-refused`" in text


def test_refusals_beyond_every_budget_are_counted() -> None:
    many = tuple(Refusal("x", f"c/lane{number}", None, "w" * 5000) for number in range(5000))
    text = plan_markdown(replace(scenes.refused(), refusals=many), {})
    assert len(text) <= BUDGET
    shown = text.split("<details>")[0].count("- **refused**")
    assert shown > 1000
    assert found(LEFT, text) >= 5000 - shown


def test_remarks_push_no_delete_out() -> None:
    demo = scenes.demo()
    many = tuple(Deferred(f"c/lane{number}", "\U0001f600" * 500) for number in range(2000))
    text = plan_markdown(replace(demo, deferred=many), {})
    assert len(text.encode()) <= BUDGET
    assert len(demo.changes) == len(table(text)) - 2
    assert text.index("| what |") < text.index("**deferred**")
    assert found(LEFT, text) > 1000


NAMES = st.text(min_size=1, max_size=80)


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_any_plan_fits_with_its_id_and_its_deletes_before_all_other_changes(data: st.DataObject) -> None:
    """Whatever the names, however many lanes: the property that a reviewer lives by."""
    kinds = data.draw(st.lists(st.sampled_from(list(ChangeKind)), max_size=12)) * data.draw(st.integers(1, 60))
    name, why = data.draw(NAMES), data.draw(st.text(max_size=900))
    changes = tuple(Change(f"c/{number}{name}", kind, why, (name,) * 5) for number, kind in enumerate(kinds))
    dark = tuple(Outage(item.gang, (name,), (item.gang, name), 30.0, 60.0) for item in changes[::2])
    silent = tuple(Withheld(item.gang, "hold", why) for item in changes[::3])
    made = replace(scenes.settled(), changes=changes, outages=dark, withheld=silent, commit=name, id="0123456789ab")
    text = plan_markdown(made, {})
    assert len(text.encode()) <= BUDGET
    assert "`0123456789ab`" in text.split("| what |")[0]
    rows = [row[0].strip("*") for row in table(text)[2:]]
    deletes = [kind in {"stop", "clean"} for kind in rows]
    assert sorted(deletes, reverse=True) == deletes
    gone = sum(kind in {ChangeKind.STOP, ChangeKind.CLEAN} for kind in kinds)
    assert sum(deletes) == gone or found(LEFT, text) > 0
    assert {5} >= {len(row) for row in table(text)}


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
