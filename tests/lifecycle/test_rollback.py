"""Going back by command: a new revision like an earlier one, and what was gone back from stays away."""

from pathlib import Path
from typing import Any

import pytest

from reconciler import holds, rollback
from reconciler.applied import Applied
from reconciler.applying import ROLLBACK
from reconciler.core.outcome import Exit
from reconciler.core.plan import Plan
from reconciler.core.targets import Targets, narrowed
from reconciler.fleet import Fleet
from reconciler.rollback import RollbackError
from tests.lifecycle.harness import Story

SOLO = (("solo", "single-3"),)
OLD, NEW = "ctx-size: 512", "ctx-size: 256"


@pytest.fixture
def story(tmp_path: Path) -> Story:
    """A lane in its second version."""
    made = Story(tmp_path, SOLO)
    assert Exit.OK == made.apply().exit
    made.edit(OLD, NEW)
    assert Exit.OK == made.apply().exit
    return made


def back(story: Story, number: int | None = None, reason: str = "") -> Applied:
    async def work(fleet: Fleet) -> Applied:
        wanted = rollback.placement(fleet, "solo")
        version = rollback.version(fleet, wanted, await fleet.observe(), number)
        earlier = fleet.wanting(version.gang)
        made = narrowed(earlier.plan(await earlier.observe()), earlier.desired, Targets(frozenset({"solo"})))
        applied = await earlier.apply(made, command=ROLLBACK)
        if applied.exit is Exit.OK:
            rollback.put_aside(fleet, wanted, version, applied.run_id, reason)
        return applied

    found: Applied = story.run(work)
    return found


def withheld(story: Story) -> list[tuple[str, str]]:
    async def work(fleet: Fleet) -> Plan:
        made = fleet.plan(await fleet.observe())
        return holds.withheld(made, holds.recorded(fleet, 0.0))

    made: Any = story.run(work)
    return [(item.gang, item.kind) for item in made.withheld]


def command(story: Story) -> list[str]:
    """The command lines of what runs."""
    return [
        " ".join(item.command)
        for node in story.nodes.nodes
        for item in node.facts().containers
        if item.owner is not None and item.is_running
    ]


def test_the_generation_before_stays_stopped_and_is_no_litter(story: Story) -> None:
    assert {"node3/fleet-solo-r0-v1": "exited", "node3/fleet-solo-r0-v2": "running"} == story.containers()
    assert story.plan().is_settled


def test_no_more_generations_stay_than_are_to_be_retained(story: Story) -> None:
    story.edit(NEW, "ctx-size: 128")
    assert Exit.OK == story.apply().exit
    assert {"node3/fleet-solo-r0-v2": "exited", "node3/fleet-solo-r0-v3": "running"} == story.containers()


def test_going_back_is_a_new_revision_like_the_earlier_one(story: Story) -> None:
    assert Exit.OK == back(story).exit
    assert {"node3/fleet-solo-r0-v2": "exited", "node3/fleet-solo-r0-v3": "running"} == story.containers()
    assert "512" in command(story)[0]


def test_what_was_gone_back_from_stays_away_until_the_spec_changes(story: Story) -> None:
    assert Exit.OK == back(story, reason="slow").exit
    assert [("single-3/solo", "quarantine")] == withheld(story)
    assert "went back to revision 1: slow" in story.quarantined()[0].cause
    story.edit(NEW, OLD)
    assert [] == withheld(story)
    assert story.plan().is_settled


def test_a_way_back_that_fails_leaves_what_ran(story: Story) -> None:
    story.nodes.node("node3").missing_paths.clear()
    before = command(story)
    story.edit("expect: Paris", "expect: London")  # of no account: the earlier version has its own gate
    assert Exit.OK == back(story).exit
    assert before != command(story)


def test_an_older_version_is_told_by_the_record(story: Story) -> None:
    story.edit(NEW, "ctx-size: 128")
    assert Exit.OK == story.apply().exit
    assert Exit.OK == back(story, 1).exit
    assert "512" in command(story)[0]


def test_there_is_nothing_to_go_back_to(tmp_path: Path) -> None:
    story = Story(tmp_path, SOLO)
    story.apply()
    with pytest.raises(RollbackError, match="has no earlier version") as caught:
        back(story)
    hint = "known revisions: 1; for another lane in its place, change `placements` and `fleet apply`"
    assert hint == caught.value.hint


def test_a_placement_that_is_not_there_is_told_with_those_that_are(story: Story) -> None:
    fleet = story.load()
    with pytest.raises(RollbackError, match="no placement named 'sola'") as caught:
        rollback.placement(fleet, "sola")
    assert "placed are: single-3/solo" == caught.value.hint
