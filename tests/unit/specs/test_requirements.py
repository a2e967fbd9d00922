"""What a model requires holds for every lane that serves it, and the reason is shown."""

from pathlib import Path

import pytest

from tests.unit.specs.helpers import edited, faults, loaded, messages

LAYOUT = "{engine: vllm, env: {LAYOUT: BLHNC}, reason: pages of two sizes}"
MODEL = '"{paths.models}/m"'


def with_requirement(requirement: str, lane: str = "", model: str = "") -> str:
    edits = [(MODEL, f"{MODEL}, {model}requires: [{requirement}]")]
    return edited(*edits, ("    nodes: 2\n", f"    nodes: 2\n{lane}"))


CASES: dict[str, tuple[str, str]] = {
    "a variable is not set": (
        "16:12: the lane 'duo' needs LAYOUT=BLHNC in `env`; it is not set",
        with_requirement(LAYOUT),
    ),
    "a variable has another value": (
        "16:19: the lane 'duo' needs LAYOUT=BLHNC in `env`; it is 'LBNHC'",
        with_requirement(LAYOUT, "    env: {LAYOUT: LBNHC}\n"),
    ),
    "a variable is a secret": (
        "16:19: the lane 'duo' needs LAYOUT=BLHNC in `env`; it is a secret",
        with_requirement(LAYOUT, "    env: {LAYOUT: {secret: env:L}}\n"),
    ),
    "an argument is not set": (
        "16:12: the lane 'duo' needs `load-format: \"b12x\"` in `args`; it is not set",
        with_requirement("{args: {load-format: b12x}, reason: others mix the weights up}"),
    ),
    "an argument of the model is taken away": (
        "16:25: the lane 'duo' needs `load-format: \"b12x\"` in `args`; it is not set",
        with_requirement(
            "{args: {load-format: b12x}, reason: x}", "    args: {load-format: null}\n", "args: {load-format: b12x}, "
        ),
    ),
    "an argument has another value": (
        "16:18: the lane 'duo' needs `spec: {\"tokens\": 5}` in `args`; it is {\"tokens\": 7, \"method\": \"dflash\"}",
        with_requirement(
            "{args: {spec: {tokens: 5}}, reason: x}", "    args: {spec: {tokens: 7, method: dflash}}\n"
        ),
    ),
    "an argument is forbidden": (
        "16:26: the lane 'duo' may not have `quantization` in `args`; it is \"fp8\"",
        with_requirement("{args: {quantization: null}, reason: x}", "    args: {quantization: fp8}\n"),
    ),
    "a number is no flag": (
        "16:19: the lane 'duo' needs `eager: true` in `args`; it is 1",
        with_requirement("{args: {eager: true}, reason: x}", "    args: {eager: 1}\n"),
    ),
    "a requirement asks for nothing": (
        "10:44: models.m.requires[0]: a requirement needs `env` or `args`",
        with_requirement("{reason: x}"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_lane_without_what_its_model_requires_is_refused(tmp_path: Path, name: str) -> None:
    expected, text = CASES[name]
    assert [expected] == faults(tmp_path, text)


ACCEPTED = {
    "the variable has the value": with_requirement(LAYOUT, "    env: {LAYOUT: BLHNC}\n"),
    "the requirement is of another engine": with_requirement(LAYOUT.replace("vllm", "sglang")),
    "the model's own argument": with_requirement("{args: {a: 1}, reason: x}", "", "args: {a: 1}, "),
    "underscores are dashes": with_requirement("{args: {a-b: 1}, reason: x}", "    args: {a_b: 1}\n"),
    "a mapping with more": with_requirement("{args: {s: {t: 5}}, reason: x}", "    args: {s: {t: 5, u: 6}}\n"),
    "a forbidden argument is not there": with_requirement("{args: {q: null}, reason: x}"),
    "a command line is not read": with_requirement("{args: {a: 1}, reason: x}", "    argv: [serve, --a, 1]\n"),
}


@pytest.mark.parametrize("name", ACCEPTED)
def test_a_lane_that_has_it_is_accepted(tmp_path: Path, name: str) -> None:
    assert loaded(tmp_path, ACCEPTED[name]).fleet


def test_the_reason_is_shown_with_its_place_and_what_to_write(tmp_path: Path) -> None:
    said = [line.strip() for line in messages(tmp_path, with_requirement(LAYOUT)).splitlines()]
    assert [
        "pages of two sizes",
        "The model 'm' requires it at fleet.yaml:10:44.",
        "write `LAYOUT: BLHNC` into `env` of the lane",
    ] == said[1:]


def test_a_parked_lane_is_held_to_it_too(tmp_path: Path) -> None:
    text = edited((MODEL, f"{MODEL}, requires: [{LAYOUT}]"), ("  solo:\n", "  solo:\n    model: m\n"))
    assert "18:12: the lane 'solo' needs LAYOUT=BLHNC in `env`; it is not set" in faults(tmp_path, text)
