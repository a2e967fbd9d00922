"""How many random stories of the simulation are played in a minute, on all processors. Only told: there is no goal."""

import math

from bench.measure import Measured

NAMES = ("simulate_runs_per_minute",)
SEEDS = 400


def measure() -> list[Measured]:
    """The seeds that `make simulate` plays first. Raises `AssertionError` when one of them fails."""
    from tests.simulate.many import play_many  # noqa: PLC0415 - the processes it forks need nothing of other benches

    tally = play_many(range(1, SEEDS + 1))
    assert not tally.failed, [item.scenario.seed for item in tally.failed]
    return [Measured(NAMES[0], math.inf, "1 a minute (only told)", tally.a_minute, 1, "runs")]
