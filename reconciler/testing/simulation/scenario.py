"""A whole story before it is played, as a value that follows from its seed."""

import random
from dataclasses import dataclass, replace
from typing import Literal

from reconciler.testing.simulation.cast import IMAGES, Cast, Part, cast_of
from reconciler.testing.simulation.engine import MOODS, SERVING
from reconciler.testing.simulation.troubles import OF_A_CALL, OF_A_PERSON, OF_THE_CONTROLLER, Kind, Trouble

How = Literal["running", "stopped", "broken", "unproved", "half created", "littered", "another fleet's"]
HOWS: tuple[How, ...] = (
    "running",
    "running",
    "running",
    "stopped",
    "broken",
    "unproved",
    "half created",
    "littered",
    "another fleet's",
)

KINDS: tuple[tuple[Kind, int], ...] = (
    ("kill", 6),
    ("interrupt", 2),
    ("lose the reply", 4),
    ("refuse", 3),
    ("no space", 1),
    ("time out", 2),
    ("delay", 3),
    ("power off", 2),
    ("reboot", 2),
    ("restart docker", 2),
    ("crash docker", 1),
    ("cut the link", 2),
    ("drop sessions", 2),
    ("isolate the controller", 1),
    ("change the host key", 1),
    ("fill the disk", 1),
    ("corrupt an image", 1),
    ("registry down", 1),
    ("kill a container", 2),
    ("stop a container", 2),
    ("start a container", 2),
    ("delete a container", 1),
)
"""What can go wrong, and how often compared with the others."""

LATEST_CALL, LATEST_CHANGE = 220, 26
"""Troubles strike within so many calls, or changes, of a turn: somewhat more than a usual turn has."""


@dataclass(frozen=True)
class Left:
    """What an earlier run left of a lane."""

    part: Part
    how: How


@dataclass(frozen=True)
class Turn:
    """One apply: what is wanted, what goes wrong, and who is at work beside it.

    `forgets`: the controller comes with an empty store. `rival`: what another controller wants that begins
    `rival_after_s` seconds later, knowing nothing of the first.
    """

    wants: tuple[Part, ...]
    troubles: tuple[Trouble, ...] = ()
    forgets: bool = False
    rival: tuple[Part, ...] | None = None
    rival_after_s: float = 0.0


@dataclass(frozen=True)
class Scenario:
    """Nodes, what is there in the beginning, and the turns. After the last one everything is healed and applied."""

    seed: int
    cast: Cast
    left: tuple[Left, ...]
    images: tuple[tuple[str, int], ...]
    turns: tuple[Turn, ...]

    @property
    def wish(self) -> tuple[Part, ...]:
        """What is wanted in the end: the last turn's, as engines that serve."""
        return tuple(part if part.mood in SERVING else replace(part, mood="good") for part in self.turns[-1].wants)


def scenario(seed: int) -> Scenario:
    """The story of this seed."""
    dice = random.Random(seed)  # noqa: S311 - repeatable on purpose
    cast = cast_of(dice.choice((1, 2, 2, 2, 3, 3, 3, 4, 4, 5, 6)))
    before = _parts(dice, cast, SERVING)
    left = tuple(Left(part, dice.choice(HOWS)) for part in before if dice.random() < 0.85)
    images = tuple((node.name, number) for node in cast.nodes for number in range(len(IMAGES)) if dice.random() < 0.5)
    turns: list[Turn] = []
    parts = before
    for _ in range(dice.choice((1, 1, 1, 2, 2))):
        parts = _changed(dice, cast, parts)
        turns.append(_turn(dice, cast, parts))
    return Scenario(seed, cast, left, images, tuple(turns))


def _parts(dice: random.Random, cast: Cast, moods: tuple[str, ...]) -> tuple[Part, ...]:
    """Lanes on clusters that share no node."""
    free = {node.name for node in cast.nodes}
    clusters = list(cast.clusters)
    dice.shuffle(clusters)
    lanes = [*"vwxyz"]
    dice.shuffle(lanes)
    found: list[Part] = []
    for name, members in clusters:
        if free.issuperset(members) and dice.random() < 0.75:
            free -= {*members}
            found.append(_part(dice, lanes.pop() if lanes else "u", name, moods))
    return tuple(found[:4])


def _part(dice: random.Random, lane: str, cluster: str, moods: tuple[str, ...]) -> Part:
    mood = dice.choice(moods) if dice.random() < 0.3 else "good"
    return Part(lane, cluster, dice.randint(1, 3), dice.randrange(len(IMAGES)), mood)


def _changed(dice: random.Random, cast: Cast, parts: tuple[Part, ...]) -> tuple[Part, ...]:
    """The spec is edited: nothing, one lane, a lane moves, or other lanes altogether."""
    throw = dice.random()
    if throw < 0.15:
        return parts
    if throw < 0.5 and parts:
        place = dice.randrange(len(parts))
        old = parts[place]
        return (
            *parts[:place],
            replace(_part(dice, old.lane, old.cluster, MOODS), mood=_mood(dice)),
            *parts[place + 1 :],
        )
    if throw < 0.65 and parts:
        return _moved(dice, cast, parts)
    return _parts(dice, cast, MOODS)


def _mood(dice: random.Random) -> str:
    return dice.choice(MOODS) if dice.random() < 0.45 else "good"


def _moved(dice: random.Random, cast: Cast, parts: tuple[Part, ...]) -> tuple[Part, ...]:
    """The first lane goes to another cluster, and whoever is in its way goes."""
    cluster, members = dice.choice(cast.clusters)
    rest = tuple(part for part in parts[1:] if not {*cast.members(part.cluster)} & {*members})
    return (replace(parts[0], cluster=cluster), *rest)


def _turn(dice: random.Random, cast: Cast, parts: tuple[Part, ...]) -> Turn:
    count = dice.choice((0, 1, 1, 1, 1, 2, 2, 3))
    troubles = tuple(_trouble(dice, cast) for _ in range(count))
    rival = _parts(dice, cast, MOODS) if dice.random() < 0.12 else None
    return Turn(parts, troubles, dice.random() < 0.5, rival, dice.choice((0.0, 0.2, 1.0, 3.0, 8.0)))


def _trouble(dice: random.Random, cast: Cast) -> Trouble:
    names, weights = zip(*KINDS, strict=True)
    kind: Kind = dice.choices(names, weights)[0]
    changes_only = dice.random() < 0.6
    nth = dice.randint(1, LATEST_CHANGE if changes_only else LATEST_CALL)
    is_somewhere = kind not in OF_A_CALL | OF_THE_CONTROLLER | {"registry down"}
    return Trouble(
        kind,
        nth,
        changes_only,
        dice.random() < 0.5,
        dice.choice(cast.nodes).name if is_somewhere else "",
        dice.choice((0.5, 5.0, 15.0, 30.0, 60.0)) if kind not in OF_A_PERSON else 0.0,
        dice.randrange(12),
    )
