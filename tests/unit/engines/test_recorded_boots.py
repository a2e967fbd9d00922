"""What engines really say while they boot, recorded in the lab (`make test-vllm`)."""

import re
from pathlib import Path

import pytest

from reconciler.core.causes import diagnose
from reconciler.engines import ENGINES

FOLDER = Path(__file__).parents[2] / "fixtures/boots"
EAGER = ["image", "weights", "load", "api"]
"""Of an engine that neither compiles nor captures."""


def lines(name: str) -> list[str]:
    return (FOLDER / f"{name}.log").read_text().splitlines()


def phases(engine: str, name: str) -> list[str]:
    """The phases that a log tells of, in the order of their first lines."""
    first: dict[str, int] = {}
    for number, line in enumerate(lines(name)):
        for phase in ENGINES[engine].phases:
            if re.search(phase.pattern, line):
                first.setdefault(phase.name, number)
    return sorted(first, key=first.__getitem__)


def fatal(engine: str, name: str) -> list[str]:
    return [line for line in lines(name) if any(re.search(pattern, line) for pattern in ENGINES[engine].fatal)]


@pytest.mark.parametrize(
    ("engine", "name", "expected"),
    [("vllm", "vllm-0.32.0-head", EAGER), ("vllm", "vllm-0.32.0-worker", EAGER[:3])],
)
def test_a_boot_tells_its_phases_in_order_and_nothing_that_would_explain_an_end(
    engine: str, name: str, expected: list[str]
) -> None:
    assert expected == phases(engine, name)
    assert [] == fatal(engine, name)
    assert diagnose(lines(name), None, oom_killed=False) is None


def test_an_argument_that_the_parser_refuses_is_fatal() -> None:
    assert ["vllm: error: unrecognized arguments: --no-such-flag 1"] == fatal("vllm", "vllm-0.32.0-refused")
