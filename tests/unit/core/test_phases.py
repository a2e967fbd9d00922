"""How far a boot is by what its ranks say, which line ends it, and whether it moves at all."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.core.phases import ANSWER, FIRST, ORDER, TOKEN, Boot, LogRules, Signs, fatal_line, reached

MIB = 2**20
RULES = LogRules(
    (("weights", r"Loading safetensors"), ("load", r"Model loading took"), ("capture", r"Capturing CUDA graphs")),
    (r"CUDA out of memory", r"^ValueError: "),
)

SAID: list[tuple[str, list[str], str]] = [
    ("nothing", [], FIRST),
    ("nothing that is known", ["hello", ""], FIRST),
    ("one phase", ["INFO Loading safetensors checkpoint shards:  12%"], "weights"),
    ("two, the later counts", ["INFO Loading safetensors", "INFO Model loading took 12 s"], "load"),
    ("in any order of lines", ["INFO Model loading took 12 s", "INFO Loading safetensors"], "load"),
    ("the one in between was not seen", ["Capturing CUDA graphs (mixed): 3/35"], "capture"),
    ("far out in a long line", ["x" * 5_000_000 + "Capturing CUDA graphs"], FIRST),
]


@pytest.mark.parametrize(("what", "lines", "expected"), SAID, ids=[row[0] for row in SAID])
def test_the_phase_is_the_last_one_that_the_log_tells_of(what: str, lines: list[str], expected: str) -> None:
    assert expected == reached(RULES, lines), what


def test_an_engine_without_patterns_tells_of_no_phase() -> None:
    assert FIRST == reached(LogRules(), ["Loading safetensors"])
    assert fatal_line(LogRules(), ["CUDA out of memory"]) is None


def test_the_first_fatal_line_counts() -> None:
    lines = ["INFO fine", "  torch: CUDA out of memory. Tried ", "ValueError: x"]
    assert "torch: CUDA out of memory. Tried" == fatal_line(RULES, lines)
    assert fatal_line(RULES, ["INFO a ValueError: was handled"]) is None


def test_a_boot_goes_on_and_keeps_how_long_each_phase_took() -> None:
    boot = Boot(FIRST, 100.0).at("weights", 102.0).at("load", 192.0)
    assert Boot("load", 192.0, ((FIRST, 2.0), ("weights", 90.0))) == boot
    assert ((FIRST, 2.0), ("weights", 90.0), ("load", 8.0)) == boot.until(200.0)
    assert boot is boot.at("weights", 200.0)
    assert boot is boot.at("load", 200.0)
    assert "setting up the model 8s, usually 1m" == boot.told(200.0, {"load": 60.0, "weights": 1.0})
    assert "setting up the model 8s" == boot.told(200.0, {})


@given(st.lists(st.tuples(st.sampled_from(ORDER), st.floats(0, 100)), max_size=20))
def test_a_boot_never_goes_back_and_its_phases_fill_its_time(steps: list[tuple[str, float]]) -> None:
    boot, now_s = Boot(FIRST, 0.0), 0.0
    for phase, pause_s in steps:
        now_s += pause_s
        before, boot = boot, boot.at(phase, now_s)
        assert ORDER.index(before.phase) <= ORDER.index(boot.phase)
    assert sum(seconds for _, seconds in boot.took) + now_s - boot.since_s == pytest.approx(now_s)


def test_the_last_phases_are_those_of_the_api() -> None:
    assert (TOKEN, ANSWER) == ORDER[-2:]


MOVES: list[tuple[str, Signs, Signs, bool]] = [
    ("a new line", Signs("a"), Signs("b"), True),
    ("the first line", Signs(), Signs("a"), True),
    ("the same line", Signs("a"), Signs("a"), False),
    ("no line can be read", Signs("a"), Signs(), False),
    ("memory taken", Signs("a", 4000 * MIB), Signs("a", 3000 * MIB), True),
    ("memory given back", Signs("a", 3000 * MIB), Signs("a", 4000 * MIB), True),
    ("a little memory", Signs("a", 4000 * MIB), Signs("a", 3900 * MIB), False),
    ("disk written", Signs("a", None, 900 * MIB), Signs("a", None, 800 * MIB), True),
    ("a little disk", Signs("a", None, 900 * MIB), Signs("a", None, 899 * MIB), False),
    ("memory not known", Signs("a", None), Signs("a", 3000 * MIB), False),
    ("memory not known any more", Signs("a", 3000 * MIB), Signs("a", None), False),
]


@pytest.mark.parametrize(("what", "before", "now", "expected"), MOVES, ids=[row[0] for row in MOVES])
def test_signs_of_life(what: str, before: Signs, now: Signs, expected: bool) -> None:
    assert expected == before.moved(now), what


def test_a_creep_of_memory_counts_once_it_is_far_enough() -> None:
    signs, moves = Signs("", 1000 * MIB), 0
    for level in range(990, 390, -10):
        now = Signs("", level * MIB)
        moves += signs.moved(now)
        signs = signs.then(now)
    assert moves == 2
