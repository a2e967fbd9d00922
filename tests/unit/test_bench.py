"""What the benchmarks measure is what they say: nothing is refused, and each third of the lanes has its fate."""

from collections import Counter
from pathlib import Path

import specs
from bench.world import big_fleet_text, observed_of
from reconciler.core.plan import Kind
from reconciler.core.planner import make_plan
from reconciler.engines import RULES, desired_fleet


def test_the_big_fleet_has_a_third_in_sync_a_third_to_replace_and_a_third_to_boot(tmp_path: Path) -> None:
    path = tmp_path / "fleet.yaml"
    path.write_text(big_fleet_text(36), encoding="utf-8")
    desired = desired_fleet(specs.load(path, RULES))
    plan = make_plan(desired, observed_of(desired))
    assert () == plan.refusals
    assert 3 == len(plan.unchanged)
    assert {Kind.REPLACE: 3, Kind.BOOT: 3} == Counter(change.kind for change in plan.changes)
