"""Plays random stories on simulated nodes and checks after every event that nothing happened which never may.

    failed = play(scenario(seed=7), MyController)      # None when all went well
    if failed:
        print(story(shrunk(failed, MyController)))

A scenario is a value that follows from its seed: nodes, what runs on them, what is wanted in turn, and what goes wrong
when. A `Controller` is what carries out: `reconciler.Fleet` in our tests, or whatever is to be put to the test.
"""

from reconciler.testing.simulation.cast import Cast, Part, cast_of, desired_of
from reconciler.testing.simulation.engine import MOODS, engine
from reconciler.testing.simulation.monitor import Monitor
from reconciler.testing.simulation.playing import Controller, Ending, Failed, Played, play, watched
from reconciler.testing.simulation.scenario import Left, Scenario, Turn, scenario
from reconciler.testing.simulation.shrinking import shrunk
from reconciler.testing.simulation.telling import story
from reconciler.testing.simulation.troubles import Trouble

__all__ = [
    "MOODS",
    "Cast",
    "Controller",
    "Ending",
    "Failed",
    "Left",
    "Monitor",
    "Part",
    "Played",
    "Scenario",
    "Trouble",
    "Turn",
    "cast_of",
    "desired_of",
    "engine",
    "play",
    "scenario",
    "shrunk",
    "story",
    "watched",
]
