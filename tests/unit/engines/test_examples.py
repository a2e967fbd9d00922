"""The rendered ranks of every lane of the examples, as tables that a person can read: `FLEET_GOLDEN=write`."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import specs
from reconciler.core.desired import Gang
from reconciler.engines import RULES, desired_fleet
from tests.unit.engines.fleets import shown
from tests.unit.views.golden import assert_golden_at

EXAMPLES = Path(__file__).parents[3] / "examples"
GOLDEN = Path(__file__).parent / "golden"
FLEETS = sorted(EXAMPLES.glob("*/fleet.yaml"))


def placements(spec: specs.Spec, lane: str) -> list[specs.Placement]:
    """Where the lane is placed; one that is not, on the smallest cluster that holds it, or nowhere."""
    placed = [item for item in spec.placements if item.lane == lane]
    need = spec.lanes[lane].node_count
    large = [(len(cluster.nodes), name) for name, cluster in spec.clusters.items() if len(cluster.nodes) >= need]
    return placed or [specs.Placement(lane=lane, cluster=min(large)[1])] if placed or large else []


def gangs(spec: specs.Spec) -> Iterator[Gang]:
    """Each lane as it would run, parked ones, too."""
    for lane in sorted(spec.lanes):
        for placement in placements(spec, lane):
            yield from desired_fleet(spec.model_copy(update={"placements": (placement,)})).gangs


@pytest.mark.parametrize("path", FLEETS, ids=lambda path: path.parent.name)
def test_every_lane_of_an_example_as_it_is_rendered(path: Path) -> None:
    spec = specs.load(path, RULES)
    found = list(gangs(spec))
    assert set(spec.lanes) == {gang.lane for gang in found}
    assert_golden_at(GOLDEN / f"example_{path.parent.name}.txt", "\n".join(map(shown, found)))


@pytest.mark.parametrize("path", FLEETS, ids=lambda path: path.parent.name)
def test_the_ranks_of_an_example_differ_in_what_makes_them_ranks(path: Path) -> None:
    """Two ranks of a gang that ran the same would be one rank twice."""
    for gang in gangs(specs.load(path, RULES)):
        told = {(rank.container.command, rank.container.env) for rank in gang.ranks}
        assert len(gang.ranks) == len(told), gang.address
