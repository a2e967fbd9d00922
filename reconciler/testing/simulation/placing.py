"""Puts on the nodes what an earlier run left there, without any controller."""

import asyncio

from reconciler.core.desired import Gang, RankSpec
from reconciler.core.identity import container_name, labels, unproved_name
from reconciler.testing.fleet import SimulatedFleet
from reconciler.testing.simulation.cast import FLEET, IMAGES, SECRET, TOKEN, gang_of
from reconciler.testing.simulation.engine import BOOT_S
from reconciler.testing.simulation.scenario import Left, Scenario

AT_REST = frozenset({"stopped", "half created", "another fleet's"})
"""What does not run in the beginning."""

SETTLED_S = BOOT_S + 4.0


async def set_up(fleet: SimulatedFleet, scenario: Scenario) -> None:
    """The nodes as they are when the first turn begins: images, and lanes that had the time to boot."""
    for node, number in scenario.images:
        fleet.node(node).load_image(IMAGES[number].digest)
    for left in scenario.left:
        _create(fleet, left, gang_of(scenario.cast, left.part))
    running = [left for left in scenario.left if left.how not in AT_REST]
    for workers_only in (True, False):
        for left in running:
            _start(fleet, left, gang_of(scenario.cast, left.part), workers=workers_only)
        await asyncio.sleep(SETTLED_S)
        fleet.world.sync()
    for left in scenario.left:
        _finish(fleet, left, gang_of(scenario.cast, left.part))
    await asyncio.sleep(SETTLED_S)
    fleet.world.sync()


def _create(fleet: SimulatedFleet, left: Left, gang: Gang) -> None:
    whose = "other" if left.how == "another fleet's" else FLEET
    for rank in gang.ranks if left.how != "half created" else gang.ranks[:1]:
        _container(fleet, whose, gang, rank, 2 if left.how == "littered" else 1, is_proved=_is_proved(left))
        if left.how == "littered":
            _container(fleet, whose, gang, rank, 1, is_proved=True)


def _container(
    fleet: SimulatedFleet, whose: str, gang: Gang, rank: RankSpec, revision: int, *, is_proved: bool
) -> None:
    node = fleet.node(rank.node)
    image = node.load_image(rank.container.image.digest)
    name = container_name(gang.lane, rank.index, revision)
    marks = labels(whose, gang, rank, revision, f"earlier/{gang.address}/{rank.index}/{revision}", image.id)
    node.create(name if is_proved else unproved_name(name), rank.container, image.id, marks, {TOKEN.secret: SECRET})


def _is_proved(left: Left) -> bool:
    return left.how not in {"unproved", "half created"}


def _start(fleet: SimulatedFleet, left: Left, gang: Gang, *, workers: bool) -> None:
    name = "v2" if left.how == "littered" else "v1"
    for rank in gang.ranks:
        if bool(rank.index) == workers:
            proved = f"fleet-{gang.lane}-r{rank.index}-{name}"
            fleet.node(rank.node).start_container(proved if _is_proved(left) else unproved_name(proved))


def _finish(fleet: SimulatedFleet, left: Left, gang: Gang) -> None:
    if left.how == "broken":
        last = gang.ranks[-1]
        fleet.node(last.node).kill(container_name(gang.lane, last.index, 1))
