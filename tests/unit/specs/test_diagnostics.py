"""How a fault is shown."""

import json
from pathlib import Path

from specs import Diagnostic, SpecErrors
from specs.diagnostics import MAX_TEXT, Place, did_you_mean, listing

FULL = Diagnostic(Path("fleet.yaml"), 3, 7, "what", "why\nand why", "did you mean 'x'?")


def test_a_diagnostic_shows_place_what_why_and_what_to_do() -> None:
    assert "fleet.yaml:3:7: what\n    why\n    and why\n    did you mean 'x'?" == str(FULL)


def test_a_diagnostic_without_notes_is_one_line() -> None:
    assert "fleet.yaml:3:7: what" == str(Diagnostic(Path("fleet.yaml"), 3, 7, "what"))


def test_a_diagnostic_is_a_json_object() -> None:
    expected = {
        "path": "fleet.yaml",
        "line": 3,
        "column": 7,
        "summary": "what",
        "detail": "why\nand why",
        "hint": "did you mean 'x'?",
    }
    assert expected == json.loads(json.dumps(FULL.to_dict()))


def test_errors_are_sorted_and_each_is_said_once() -> None:
    first, second = Diagnostic(Path("a"), 2, 1, "x"), Diagnostic(Path("a"), 10, 1, "x")
    errors = SpecErrors([second, first, second])
    assert (first, second) == errors.diagnostics
    assert "a:2:1: x\na:10:1: x" == str(errors)


def test_only_a_close_name_is_suggested() -> None:
    assert "did you mean 'cluster'?" == did_you_mean("clustr", ["cluster", "lane"])
    assert "" == did_you_mean("xyz", ["cluster", "lane"])


def test_a_long_list_is_cut() -> None:
    assert "a, b, and 1 more" == listing("cab", limit=2)


def test_what_a_user_wrote_cannot_steer_the_terminal() -> None:
    shown = Diagnostic.at(Place(Path("a")), "key '\x1b[31m\n'", "one\ntwo\x07")
    assert (r"key '\x1b[31m\n'", "one\ntwo\\x07") == (shown.summary, shown.detail)


def test_what_a_user_wrote_cannot_flood_the_terminal() -> None:
    assert "x" * MAX_TEXT + "..." == Diagnostic.at(Place(Path("a")), "x" * 10**6).summary
