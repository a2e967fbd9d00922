"""Makes the story of a failure smaller while it still fails: whatever can be left out is."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TypeVar

from reconciler.testing.simulation.playing import Controller, Failed, play
from reconciler.testing.simulation.scenario import Scenario, Turn

T = TypeVar("T")

MOST_PLAYS = 300


def shrunk(failed: Failed, make: Callable[[], Controller]) -> Failed:
    """The smallest failure that is found by leaving out turns, troubles, lanes, rivals and bad engines one by one."""
    plays = 0
    is_smaller = True
    while is_smaller and plays < MOST_PLAYS:
        is_smaller = False
        for smaller in _smaller(failed.scenario):
            plays += 1
            found = play(smaller, make)
            if found is not None:
                failed, is_smaller = found, True
                break
    return failed


def _smaller(scenario: Scenario) -> Iterator[Scenario]:
    for place in range(len(scenario.turns) - 1):
        yield replace(scenario, turns=_without(scenario.turns, place))
    for place in range(len(scenario.left)):
        yield replace(scenario, left=_without(scenario.left, place))
    for place, turn in enumerate(scenario.turns):
        for other in _smaller_turns(turn):
            yield replace(scenario, turns=(*scenario.turns[:place], other, *scenario.turns[place + 1 :]))


def _smaller_turns(turn: Turn) -> Iterator[Turn]:
    if turn.rival is not None:
        yield replace(turn, rival=None)
    if turn.forgets:
        yield replace(turn, forgets=False)
    for place in range(len(turn.troubles)):
        yield replace(turn, troubles=_without(turn.troubles, place))
    for place, part in enumerate(turn.wants):
        yield replace(turn, wants=_without(turn.wants, place))
        if part.mood != "good":
            yield replace(turn, wants=(*turn.wants[:place], replace(part, mood="good"), *turn.wants[place + 1 :]))


def _without(items: tuple[T, ...], place: int) -> tuple[T, ...]:
    return items[:place] + items[place + 1 :]
