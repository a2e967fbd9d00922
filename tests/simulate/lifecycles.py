"""Every change that a gang goes through in its life, each as a scenario without trouble."""

from reconciler.testing.simulation import Left, Part, Scenario, Trouble, Turn, cast_of

CAST = cast_of(4)
PAIR, OTHER = Part("pair", "left", 1), Part("other", "left", 2)
RIGHT, QUAD = Part("east", "right", 2), Part("quad", "all", 1)


def _version(part: Part, version: int = 2, mood: str = "good", image: int = 0) -> Part:
    return Part(part.lane, part.cluster, version, image, mood)


Change = tuple[tuple[Left, ...], tuple[Part, ...]]


def _running(*parts: Part) -> tuple[Left, ...]:
    return tuple(Left(part, "running") for part in parts)


LIFECYCLES: dict[str, Change] = {
    "boot": ((), (PAIR,)),
    "replace by another version": (_running(PAIR), (_version(PAIR),)),
    "replace by another lane": (_running(PAIR), (OTHER,)),
    "two lanes replaced by one": (_running(PAIR, RIGHT), (QUAD,)),
    "one lane replaced by two": (_running(QUAD), (PAIR, RIGHT)),
    "repair": ((Left(PAIR, "broken"),), (PAIR,)),
    "prove": ((Left(PAIR, "unproved"),), (PAIR,)),
    "stop": (_running(PAIR, RIGHT), (RIGHT,)),
    "start again": ((Left(PAIR, "stopped"),), (PAIR,)),
    "go on with what was half created": ((Left(PAIR, "half created"),), (PAIR,)),
    "move to other nodes": (_running(PAIR), (Part("pair", "right", 1),)),
    "another image": (_running(PAIR), (_version(PAIR, 1, image=1),)),
    "tidy up": ((Left(PAIR, "littered"),), (PAIR,)),
    "a boot that fails and goes back": (_running(PAIR), (_version(PAIR, 2, "crashes"),)),
    "a gate that fails and goes back to two": (_running(PAIR, RIGHT), (_version(QUAD, 1, "garbles"),)),
}
"""What is there, and what is wanted."""


def lifecycle(name: str, *troubles: Trouble, forgets: bool = False) -> Scenario:
    """One of them as a scenario, with this going wrong."""
    left, wants = LIFECYCLES[name]
    images = tuple((node.name, 0) for node in CAST.nodes[:2])
    return Scenario(1, CAST, left, images, (Turn(wants, troubles, forgets),))
