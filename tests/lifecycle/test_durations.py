"""How long things took is recorded, is expected of the next time, and changes no plan."""

import shutil
from pathlib import Path

from reconciler.core.estimates import Estimates
from reconciler.core.outcome import Exit
from reconciler.core.plan import plan_json
from reconciler.fleet import Fleet
from reconciler.history import known_durations
from reconciler.views.durations_text import durations_text
from reconciler.views.plan_text import plan_text
from tests.lifecycle.harness import QUAD, Story


def estimated(story: Story) -> Estimates:
    async def work(fleet: Fleet) -> Estimates:
        return fleet.estimates(fleet.plan(await fleet.observe()))

    found: Estimates = story.run(work)
    return found


def test_a_second_boot_is_expected_to_take_what_the_first_took(tmp_path: Path) -> None:
    story = Story(tmp_path)
    assert {} == estimated(story).steps
    assert Exit.OK == story.apply().exit
    for node, name in (("node1", "fleet-pair-r0-v1"), ("node3", "fleet-solo-r0-v1")):
        story.nodes.node(node).kill(name)
    found = estimated(story)
    assert {"pair-a/pair", "single-3/solo"} == found.boots.keys()
    [dark] = found.dark
    assert dark.seconds is not None
    assert dark.seconds >= found.boots["pair-a/pair"].seconds > 1.0
    text = plan_text(story.plan(), {}, estimates=found)
    assert "(boot " in text
    assert "expect  stop unknown, boot " in text


def test_what_is_recorded_changes_no_plan(tmp_path: Path) -> None:
    story = Story(tmp_path)
    assert Exit.OK == story.apply().exit
    story.place(QUAD)
    before = plan_json(story.plan())
    shutil.rmtree(tmp_path / ".fleet")
    assert before == plan_json(story.plan())
    assert {} == estimated(story).steps


def test_history_tells_of_each_kind_of_step_and_of_one_lane(tmp_path: Path) -> None:
    story = Story(tmp_path)
    assert Exit.OK == story.apply().exit
    place = story.load().folder
    assert {"pull", "boot"} == {item.kind for item in known_durations(place)}
    text = durations_text(known_durations(place, "solo"))
    assert "single-3/solo" in text
    assert "boot" in text
    assert () == known_durations(place, "nobody")


def test_a_failed_boot_is_not_expected_of_the_next(tmp_path: Path) -> None:
    story = Story(tmp_path)
    story.edit("expect: Paris", "expect: Berlin")
    assert Exit.OK != story.apply().exit
    assert {} == estimated(story).boots
