"""How a plain scalar is read: by YAML 1.2, or as written where text belongs."""

from pathlib import Path

import pytest
import yaml

from specs import yaml_tree
from specs.scalars import is_text, resolve
from tests.unit.specs.helpers import edited, faults, loaded, messages

CORE = {
    "": None,
    "~": None,
    "null": None,
    "true": True,
    "FALSE": False,
    "yes": "yes",
    "on": "on",
    "No": "No",
    "12": 12,
    "-3": -3,
    "0x1F": 31,
    "0o17": 15,
    "1.5": 1.5,
    "1e3": 1000.0,
    ".5": 0.5,
    "-.inf": float("-inf"),
    "1_000": "1_000",
    "1:30": "1:30",
    "2026-09-29": "2026-09-29",
    "0b1": "0b1",
    "1.2.3": "1.2.3",
    "١٢": "١٢",
    "=": "=",
    "nUll": "nUll",
}


@pytest.mark.parametrize(("text", "expected"), CORE.items())
def test_plain_scalars_follow_the_core_schema_of_yaml_1_2(text: str, expected: object) -> None:
    assert (type(expected), expected) == (type(resolve(text)), resolve(text))
    assert isinstance(expected, str) == is_text(text)


AS_WRITTEN = ["yes", "on", "010", "1e3", "1.10", "true", "False", "0x1F", "1_000", "2026-09-29", "-1", "a b", ".inf"]


@pytest.mark.parametrize("text", AS_WRITTEN)
def test_env_keeps_a_plain_scalar_as_written(tmp_path: Path, text: str) -> None:
    spec = loaded(tmp_path, edited(("nodes: 2", f"nodes: 2\n    env:\n      KEY: {text}\n")))
    assert {"KEY": text} == spec.lanes["duo"].env


def test_env_keeps_what_quotes_hold(tmp_path: Path) -> None:
    spec = loaded(tmp_path, edited(("nodes: 2", """nodes: 2\n    env: {A: "", B: 'null', C: "a\\nb", D: "~"}""")))
    assert {"A": "", "B": "null", "C": "a\nb", "D": "~"} == spec.lanes["duo"].env


@pytest.mark.parametrize("empty", ["", "~", "null", "Null", "NULL"])
def test_env_refuses_a_plain_null_and_says_how_to_write_what_was_meant(tmp_path: Path, empty: str) -> None:
    text = edited(("nodes: 2", f"nodes: 2\n    env:\n      KEY: {empty}"))
    said = messages(tmp_path, text)
    assert f'found {empty or "nothing"}\n    write "{empty}" for ' in said
    assert said.startswith("fleet.yaml:17:1")


@pytest.mark.parametrize(("value", "found"), [("[a]", "a list"), ("{a: b}", "")])
def test_env_refuses_what_is_no_text(tmp_path: Path, value: str, found: str) -> None:
    lines = faults(tmp_path, edited(("nodes: 2", f"nodes: 2\n    env: {{KEY: {value}}}")))
    assert any(found in line for line in lines)
    assert all(line.startswith("16:") for line in lines)


def test_command_lines_keep_their_words_as_written(tmp_path: Path) -> None:
    spec = loaded(tmp_path, edited(("nodes: 2", "nodes: 2\n    argv: [serve, --x, 010, 1e3, yes, true]")))
    assert ("serve", "--x", "010", "1e3", "yes", "true") == spec.lanes["duo"].argv


def test_args_are_json_and_keep_the_digits_of_numbers(tmp_path: Path) -> None:
    args = "{i: 16, h: 0x10, b: true, s: yes, f: 0.85, e: 1e3, z: 0.10, n: null, inf: .inf, l: [1, 1e-4], d: {k: 1.0}}"
    spec = loaded(tmp_path, edited(("nodes: 2", f"nodes: 2\n    args: {args}")))
    expected = {
        "i": 16,
        "h": 16,
        "b": True,
        "s": "yes",
        "f": 0.85,
        "e": "1e3",
        "z": "0.10",
        "n": None,
        "inf": ".inf",
        "l": [1, "1e-4"],
        "d": {"k": 1.0},
    }
    assert expected == spec.lanes["duo"].args


def test_the_fast_parser_is_used_where_it_is_built() -> None:
    assert yaml.CSafeLoader is yaml_tree._Parser
