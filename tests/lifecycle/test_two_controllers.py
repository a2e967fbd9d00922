"""Two controllers that share nothing apply different specs at one moment. No lanes is better than two on one node."""

import asyncio
from pathlib import Path

import pytest

from reconciler.core.outcome import Exit
from reconciler.fleet import Applied, Fleet
from reconciler.testing import run_simulated
from tests.lifecycle.harness import PAIR_AND_SOLO, QUAD, Story


def both(one: Story, other: Story, delay_s: float) -> tuple[Applied, Applied]:
    """Each plans what it sees, the second one `delay_s` later."""

    async def applied(fleet: Fleet, after_s: float) -> Applied:
        await asyncio.sleep(after_s)
        return await fleet.apply(fleet.plan(await fleet.observe()))

    async def together() -> tuple[Applied, Applied]:
        return await asyncio.gather(applied(one.load(), 0.0), applied(other.load(), delay_s))

    return run_simulated(together(), seed=one.seed)


def lanes_by_node(story: Story) -> dict[str, set[str]]:
    return {
        node.name: {item.owner.lane for item in node.facts().containers if item.owner and item.is_running}
        for node in story.nodes.nodes
    }


@pytest.mark.parametrize("delay_s", [0.0, 0.1, 0.4, 1.0, 5.0, 12.0, 20.0, 40.0])
def test_no_node_ends_with_two_lanes_and_not_both_say_all_is_well(tmp_path: Path, delay_s: float) -> None:
    one = Story(tmp_path / "one", PAIR_AND_SOLO)
    other = Story(tmp_path / "other", QUAD)
    other.nodes = one.nodes
    ends = both(one, other, delay_s)
    assert [] == [lanes for lanes in lanes_by_node(one).values() if len(lanes) > 1]
    if Exit.OK == ends[0].exit == ends[1].exit:
        assert {"quad"} == set(one.running_lanes()), "the later one saw the other's lanes and replaced them"


def test_who_comes_too_late_is_told_what_runs_there(tmp_path: Path) -> None:
    one = Story(tmp_path / "one", (("solo", "single-3"),))
    other = Story(tmp_path / "other", QUAD)
    other.nodes = one.nodes
    ends = both(one, other, 0.1)
    assert {Exit.OK, Exit.LEASE_HELD} == {end.exit for end in ends}
    late = next(end for end in ends if end.exit is Exit.LEASE_HELD)
    assert late.summary.startswith("node3 is leased by ")
    assert "; nothing was changed" in late.summary
