"""A sample of the mutants is caught in every run of the tests; all of them by `make test-mutants`."""

from pathlib import Path

import pytest

from tests.mutants.__main__ import hunted
from tests.mutants.mutants import MUTANTS
from tests.mutants.patching import source_of

SAMPLE = ("cut-before-stage", "boot-before-cut", "retire-before-confirm", "no-preflight", "no-journal", "no-lease")
"""Those that are seen at once."""


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_every_mutant_has_its_place_in_the_source_and_still_compiles(mutant: object) -> None:
    found = next(item for item in MUTANTS if item is mutant)
    compile(source_of(found), found.module, "exec")


@pytest.mark.parametrize("name", SAMPLE)
def test_a_mutant_is_caught(name: str) -> None:
    code, told = hunted(name)
    assert code == 0, told


def test_there_are_at_least_twelve_and_each_is_in_the_docs() -> None:
    text = (Path(__file__).parents[2] / "docs" / "simulator.md").read_text(encoding="utf-8")
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS) >= 12
    assert [] == [mutant.name for mutant in MUTANTS if f"| `{mutant.name}` | {mutant.sentence} |" not in text]
