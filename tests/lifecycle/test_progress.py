"""Every wait says what it waits for, at each look."""

from pathlib import Path

from reconciler.core.events import Event, StepProgress
from reconciler.core.outcome import Exit
from reconciler.core.plan import Op
from tests.lifecycle.harness import QUAD, Story


def told_of(story: Story, op: Op) -> set[str]:
    """What an apply says while steps of this kind wait."""
    told: set[str] = set()

    def take(event: Event) -> None:
        if isinstance(event, StepProgress) and event.step.op is op:
            told.add(event.doing)

    assert Exit.OK == story.apply(take).exit
    return told


def test_a_wait_for_a_port_names_it(tmp_path: Path) -> None:
    assert {"port 50052 does not listen yet"} == told_of(Story(tmp_path), Op.READY)


def test_a_wait_for_memory_says_how_much_is_free(tmp_path: Path) -> None:
    """What the lane of before held comes back some time after it ended."""
    story = Story(tmp_path)
    assert Exit.OK == story.apply().exit
    story.place(QUAD)
    story.edit("  quad:\n", "  quad:\n    memory: 122GiB\n")
    told = told_of(story, Op.ROOM)
    assert {"120.0 GiB of 122.0 GiB free"} == {text.partition(";")[0] for text in told}
