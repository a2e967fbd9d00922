"""What the benchmarks measure is what they say: nothing is refused, and each third of the lanes has its fate."""

import asyncio
from collections import Counter
from pathlib import Path

import pytest

import specs
from bench import observe, observing
from bench.world import big_fleet_text, observed_of
from reconciler.core.observed import Observed
from reconciler.core.plan import Kind
from reconciler.core.planner import make_plan
from reconciler.engines import RULES, desired_fleet
from reconciler.fleet import Fleet


def test_the_big_fleet_has_a_third_in_sync_a_third_to_replace_and_a_third_to_boot(tmp_path: Path) -> None:
    path = tmp_path / "fleet.yaml"
    path.write_text(big_fleet_text(36), encoding="utf-8")
    desired = desired_fleet(specs.load(path, RULES))
    plan = make_plan(desired, observed_of(desired))
    assert () == plan.refusals
    assert 3 == len(plan.unchanged)
    assert {Kind.REPLACE: 3, Kind.BOOT: 3} == Counter(change.kind for change in plan.changes)


def test_the_played_nodes_are_read_as_what_they_are(tmp_path: Path) -> None:
    with observe.nodes(tmp_path, 2):
        found = asyncio.run(_read(tmp_path / "fleet.yaml"))
        observing.insist_on_all(found, 2)
        with pytest.raises(AssertionError):
            observing.insist_on_all(Observed({**found.nodes, "n1": found.nodes["n0"]}, {}), 2)


async def _read(spec: Path) -> Observed:
    async with Fleet.load(spec) as fleet:
        return await fleet.observe(60.0)
