"""A drift report says the same in every form: worst first, what is new, what was kept out; values stay values."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped] # it has no types of its own

from reconciler.core.drift import Finding, Kind, Report, Severity
from reconciler.core.drift.failing import ANY, exit_of
from reconciler.views import drift_words
from reconciler.views.drift_json import drift_json
from reconciler.views.drift_markdown import BUDGET, drift_markdown
from reconciler.views.drift_text import drift_text
from tests.unit.views import drifting
from tests.unit.views.golden import assert_golden
from tests.unit.views.test_markdown import table

SCHEMA = json.loads((Path(__file__).parents[3] / "docs/schemas/drift-2.json").read_text(encoding="utf-8"))
REPORTS = {"demo": drifting.demo(), "calm": drifting.calm(), "hostile": drifting.hostile()}


def many(number: int, text: str) -> Report:
    """As many findings; only the last one is an outage."""
    found = [Finding(Kind.CONFIG, f"c/l{n:04}", "env.A", text, text, text) for n in range(number)]
    found.append(Finding(Kind.RUNTIME, "zz/dark", "state", "running", "exited", "boots it", severity=Severity.OUTAGE))
    return replace(drifting.demo(), findings=tuple(found), new=frozenset())


def test_the_report_as_text() -> None:
    assert_golden("drift.txt", drift_text(drifting.demo()))


def test_the_report_as_json() -> None:
    assert_golden("drift.json.txt", drift_json(drifting.demo()))


def test_the_report_as_markdown() -> None:
    assert_golden("drift.md.txt", drift_markdown(drifting.demo()))


def test_a_calm_report_is_short() -> None:
    assert 2 == len(drift_text(drifting.calm()).splitlines())
    assert [] == table(drift_markdown(drifting.calm()))


@pytest.mark.parametrize("name", REPORTS)
def test_json_is_as_its_schema_says(name: str) -> None:
    Draft202012Validator.check_schema(SCHEMA)
    document = json.loads(drift_json(REPORTS[name]))
    assert [] == [error.message for error in Draft202012Validator(SCHEMA).iter_errors(document)]


def broken() -> list[Any]:
    found = json.loads(drift_json(drifting.demo()))
    wrong_class = json.loads(json.dumps(found))
    wrong_class["findings"][0]["class"] = "weather"
    return [{**found, "schema": "fleet.drift/1"}, {**found, "more": 1}, wrong_class]


@pytest.mark.parametrize("document", broken())
def test_the_schema_refuses_what_is_not_so(document: Any) -> None:
    assert not Draft202012Validator(SCHEMA).is_valid(document)


def test_json_has_every_finding_and_the_sums_are_theirs() -> None:
    found = json.loads(drift_json(drifting.demo()))
    assert {item.id for item in drifting.FINDINGS} == {row["id"] for row in found["findings"]}
    assert {row["id"] for row in found["findings"] if row["new"]} == drifting.demo().new
    assert {"outage": 2, "degraded": 3, "notice": 2} == found["summary"]["by_severity"]
    assert 4 == found["summary"]["suppressed"]
    assert "outage" == found["findings"][0]["severity"]


def test_hostile_values_move_no_cursor_and_fake_no_line_of_the_text() -> None:
    text = drift_text(drifting.hostile())
    assert {"\n"} == {char for char in text if not char.isprintable()}


def test_hostile_values_leave_the_markdown_with_its_table() -> None:
    text = drift_markdown(drifting.hostile())
    assert {8} == {len(row) for row in table(text)}
    assert 1 == len([line for line in text.splitlines() if line.startswith("#")])
    assert "<" not in re.sub(r"`[^`]*`", "", text)


@pytest.mark.parametrize("number", [0, 1, 300, 5000])
@pytest.mark.parametrize("text", ["x", "|<" * 900])
def test_markdown_fits_a_comment_counts_what_it_cut_and_keeps_the_worst(number: int, text: str) -> None:
    shown = drift_markdown(many(number, text))
    rows = table(shown)[2:]
    assert len(shown) <= BUDGET
    assert "`zz/dark`" == rows[0][1]
    left = re.search(r"\*\*(\d+) more findings? \(\d+ degraded\) left out here", shown)
    assert number + 1 == len(rows) + (int(left[1]) if left else 0)


VERDICTS = [
    (drifting.calm(), 0, "All is as wanted."),
    (drifting.demo(), 4, "1 lane does not serve. 1 node could not be read, so 1 lane is not known."),
    (many(0, ""), 4, "1 lane does not serve. 1 node could not be read, so 1 lane is not known."),
    (
        replace(drifting.demo(), findings=drifting.FINDINGS[5:6]),
        4,
        "1 finding. 1 node could not be read, so 1 lane is not known.",
    ),
    (
        replace(drifting.calm(), findings=drifting.FINDINGS[1:3]),
        2,
        "2 findings, none of which keeps a lane from serving.",
    ),
    (
        replace(drifting.calm(), nodes=drifting.demo().nodes),
        4,
        "All that could be read is as wanted. 1 node could not be read.",
    ),
    (
        replace(drifting.calm(), missing=("health",)),
        4,
        "All that could be read is as wanted. There was no time to see all.",
    ),
]


@pytest.mark.parametrize(("report", "code", "sentence"), VERDICTS)
def test_the_verdict_and_the_exit_code(report: Report, code: int, sentence: str) -> None:
    assert (code, sentence) == (exit_of(report, ANY), drift_words.verdict(report))


TIMES = [
    (0.0, "1970-01-01T00:00:00Z"),
    (drifting.NOON_S, "2026-11-30T12:00:00Z"),
    (951_782_399.9, "2000-02-28T23:59:59Z"),
]


@pytest.mark.parametrize(("at_s", "text"), TIMES)
def test_a_time_in_utc(at_s: float, text: str) -> None:
    assert text == drift_words.utc(at_s)


MOMENTS = [
    ("2026-11-30T09:12:44Z", "2026-11-30 09:12:44 UTC"),
    ("2026-11-30T09:12:44.123456789Z", "2026-11-30 09:12:44 UTC"),
    ("2026-11-30T09:12:44+02:00", "2026-11-30T09:12:44+02:00"),
    ("T\x1bZ", "T\x1bZ"),
    ("", ""),
]


@pytest.mark.parametrize(("text", "shown"), MOMENTS)
def test_a_time_as_people_read_it(text: str, shown: str) -> None:
    assert shown == drift_words.moment(text)
