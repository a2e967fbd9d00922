"""How long things took is recorded, is expected of the next time, and changes no plan."""

import shutil
from pathlib import Path

from reconciler.core.estimates import Estimates
from reconciler.core.events import Event, StepProgress
from reconciler.core.outcome import Exit
from reconciler.core.plan import plan_json
from reconciler.fleet import Fleet
from reconciler.history import known_durations
from reconciler.testing import Serves
from reconciler.views.durations_text import durations_text
from reconciler.views.plan_text import plan_text
from reconciler.views.status_text import status_text
from tests.lifecycle.harness import QUAD, Story
from tests.lifecycle.test_health import LLAMA_PHASES, SOLO, head


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
    assert {"pull", "boot"} == {item.kind.partition(":")[0] for item in known_durations(place)}
    text = durations_text(known_durations(place, "solo"))
    assert "single-3/solo" in text
    assert "boot" in text
    assert () == known_durations(place, "nobody")


def test_a_failed_boot_is_not_expected_of_the_next(tmp_path: Path) -> None:
    story = Story(tmp_path)
    story.edit("expect: Paris", "expect: Berlin")
    assert Exit.OK != story.apply().exit
    assert {} == estimated(story).boots


def phased(folder: Path) -> Story:
    """A lane that takes its time in each phase and serves; then it was killed."""
    slow = head(Serves, boot_s=60.0, phases=LLAMA_PHASES)
    story = Story(folder, SOLO, behaviour=lambda spec: slow)
    assert Exit.OK == story.apply().exit
    story.nodes.node("node3").kill("fleet-solo-r0-v1")
    return story


def test_history_tells_of_each_phase_of_a_boot_in_their_order(tmp_path: Path) -> None:
    place = phased(tmp_path).load().folder
    kinds = [item.kind for item in known_durations(place) if item.kind.startswith("boot")]
    assert ["boot", "boot:image", "boot:weights", "boot:load", "boot:capture"] == kinds[:5]
    assert "\n  boot:weights            12s  once\n" in durations_text(known_durations(place))


def test_a_second_boot_says_in_each_phase_how_long_it_usually_takes(tmp_path: Path) -> None:
    story = phased(tmp_path)
    said: list[str] = []

    def take(event: Event) -> None:
        if isinstance(event, StepProgress):
            said.append(event.doing)

    assert Exit.OK == story.apply(take).exit
    assert any(text.startswith("setting up the model 10s, usually 24s | /health") for text in said)


def test_a_status_tells_how_long_the_present_phase_usually_takes_where_history_knows(tmp_path: Path) -> None:
    story = phased(tmp_path)
    story.apply(stop_after_s=30.0)
    assert "    setting up the model (usually 24s)" in status_text(story.status())
    shutil.rmtree(tmp_path / ".fleet")
    assert ("load", None) == (story.status().lanes[0].phase, story.status().lanes[0].usual_s)
