"""The spec that is written for a lab is valid, however many nodes the lab has."""

from pathlib import Path

import pytest

import specs
from reconciler.engines import RULES
from tests.lab.specfile import PAIR_AND_SOLO, Inventory, fitting, write

PLACED = {1: ["solo"], 2: ["pair"], 3: ["pair", "solo"], 4: ["pair", "solo"], 5: ["pair", "solo"]}


@pytest.mark.parametrize("count", PLACED)
def test_the_spec_of_a_lab_has_what_fits(tmp_path: Path, count: int) -> None:
    nodes = {f"node{number}": f"10.0.0.{number}" for number in range(1, count + 1)}
    inventory = Inventory(nodes, {}, f"localhost/x@sha256:{'a' * 64}", None)
    spec = specs.load(write(tmp_path, inventory, fitting(inventory, PAIR_AND_SOLO)), RULES)
    assert PLACED[count] == [item.lane for item in spec.placements]
    assert max(lane.node_count for lane in spec.lanes.values()) <= count
    assert all(len(cluster.nodes) <= count for cluster in spec.clusters.values())
