"""Stories that once went wrong, as values: they stay the same whatever becomes of the dice."""

import pytest

from reconciler.testing.simulation import Left, Part, Scenario, Trouble, Turn, cast_of, play, story
from tests.simulate.controller import FleetController

STORIES: dict[str, Scenario] = {
    "the node whose lease is waited for loses its power": Scenario(
        126,
        cast_of(5),
        (),
        (),
        (
            Turn(
                (Part("z", "all", 2, 2),),
                (Trouble("power off", 6, changes_only=True, node="n1", lasts_s=60.0),),
                rival=(Part("v", "only-n4", 2, 1), Part("x", "middle", 3, 2)),
                rival_after_s=0.2,
            ),
        ),
    ),
    "the node whose lease is waited for has another host key": Scenario(
        220,
        cast_of(2),
        (),
        (),
        (
            Turn(
                (Part("y", "all", 1, 0),),
                (Trouble("change the host key", 84, after=True, node="n1", lasts_s=5.0),),
                rival=(Part("y", "only-n1", 3, 0), Part("x", "right", 3, 2)),
                rival_after_s=3.0,
            ),
        ),
    ),
    "a plan from before another controller booted the same gang": Scenario(
        495,
        cast_of(6),
        (Left(Part("w", "only-n5", 2, 0), "broken"),),
        (),
        (
            Turn(
                (Part("w", "only-n5", 2, 0),),
                rival=(Part("x", "only-n4", 3, 2), Part("w", "only-n5", 1, 0), Part("y", "left", 3, 0)),
            ),
            Turn(()),
        ),
    ),
    "a plan from before another controller moved the lane to another cluster of the same node": Scenario(
        215,
        cast_of(1),
        (Left(Part("v", "all", 2, 2), "running"),),
        (),
        (Turn((Part("v", "left", 2, 2),), rival=(Part("w", "left", 2, 0, "dies"),), rival_after_s=0.2),),
    ),
    "the reply of a start is lost and the engine has ended before it is looked at again": Scenario(
        1316,
        cast_of(2),
        (),
        (),
        (
            Turn(
                (Part("v", "only-n2", 3, 0), Part("x", "only-n1", 2, 2, "crashes")),
                (Trouble("lose the reply", 3, changes_only=True),),
            ),
        ),
    ),
    "a node of a lane that is to go cannot be read": Scenario(
        1394,
        cast_of(3),
        (Left(Part("z", "left", 2, 1), "running"),),
        (),
        (Turn((Part("y", "only-n1", 2, 0),), (Trouble("power off", 8, after=True, node="n1", lasts_s=0.5),)),),
    ),
    "what a lane replaced ends before its memory is free": Scenario(
        3,
        cast_of(1),
        (Left(Part("v", "all", 1, 1), "running"),),
        (),
        (Turn((Part("y", "all", 3, 2, "crashes"),)),),
    ),
}


@pytest.mark.parametrize("name", STORIES)
def test_a_story_that_once_went_wrong(name: str) -> None:
    failed = play(STORIES[name], FleetController)
    assert failed is None, story(failed)
