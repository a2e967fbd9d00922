"""Random stories: `FLEET_SEEDS` of them (2000 by default), and every seed that ever failed."""

import os
from pathlib import Path

import pytest

from reconciler.testing.simulation import play, scenario, shrunk, story, watched
from tests.simulate.controller import FleetController
from tests.simulate.many import play_many

SEEDS = int(os.environ.get("FLEET_SEEDS", "2000"))
FAILED = Path(__file__).parent / "failed_seeds.txt"


def failed_seeds() -> list[int]:
    lines = FAILED.read_text(encoding="utf-8").splitlines()
    return [int(line.split()[0]) for line in lines if line and not line.startswith("#")]


@pytest.mark.parametrize("seed", failed_seeds())
def test_a_seed_that_once_failed(seed: int) -> None:
    failed = play(scenario(seed), FleetController)
    assert failed is None, story(failed)


@pytest.mark.timeout(1800)
def test_nothing_happens_that_never_may() -> None:
    tally = play_many(range(1, SEEDS + 1))
    told = [story(shrunk(item, FleetController)) for item in tally.failed[:3]]
    assert [] == told, "\n\n".join(told)
    assert tally.played == SEEDS


def test_the_stories_have_everything_in_them() -> None:
    """A simulator that plays only good weather would find nothing."""
    kinds = {trouble.kind for seed in range(2000) for turn in scenario(seed).turns for trouble in turn.troubles}
    moods = {part.mood for seed in range(2000) for turn in scenario(seed).turns for part in turn.wants}
    hows = {left.how for seed in range(2000) for left in scenario(seed).left}
    assert (22, 10, 7) == (len(kinds), len(moods), len(hows))
    assert any(turn.rival for seed in range(100) for turn in scenario(seed).turns)


def test_the_same_seed_takes_the_same_course() -> None:
    assert watched(scenario(9), FleetController) == watched(scenario(9), FleetController)
