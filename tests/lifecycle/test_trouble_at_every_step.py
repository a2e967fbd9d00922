"""Trouble at every single step of a change that stops two lanes and boots a third: exhaustive, not random.

After whatever happened, one more apply ends where the spec says, no effect has happened twice, and never have two
lanes run on one node.
"""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from reconciler.core.outcome import Exit
from reconciler.nodes.errors import ErrorKind
from reconciler.testing import Call, Fault
from state import MemoryStore
from tests.lifecycle.harness import QUAD, Story

Break = Callable[[Story, int], None]


def change(call: Call) -> bool:
    return call.mutating


def about_to_replace(folder: Path) -> Story:
    """Two lanes run; the spec now wants the one over all four nodes, whose command line is tried out first."""
    folder.mkdir(exist_ok=True)
    store = MemoryStore()  # outlives a killed controller, as a file would, and is faster
    story = Story(folder, open_store=lambda path: store)
    assert Exit.OK == story.apply().exit
    story.place(QUAD)
    story.edit("  quad:\n", "  quad:\n    preflight: {command: [serve, --check]}\n")
    return story


@pytest.fixture(scope="module")
def steps(tmp_path_factory: pytest.TempPathFactory) -> int:
    """How many mutating calls the change makes when nothing goes wrong."""
    story = about_to_replace(tmp_path_factory.mktemp("clean"))
    before = len(story.nodes.mutations)
    assert Exit.OK == story.apply().exit
    return len(story.nodes.mutations) - before


def settle_and_check(story: Story, where: str) -> None:
    """One more apply has to end in the wanted state, whatever came before."""
    story.nodes.heal()
    assert Exit.OK == story.apply().exit, where
    assert {"quad": 4} == story.running_lanes(), where
    assert story.plan().is_settled, where
    assert 4 == len(story.containers()), where
    assert [] == story.tried_out(), where
    assert () == story.nodes.overlaps(), where


def nothing_was_created_twice(story: Story) -> bool:
    return max(Counter(story.created()).values()) == 1


def test_killed_before_or_after_every_effect_the_next_apply_converges(steps: int, tmp_path: Path) -> None:
    assert steps > 18
    for number in range(1, steps + 1):
        for after in (False, True):
            where = f"killed {'after' if after else 'before'} effect {number} of {steps}"
            story = about_to_replace(tmp_path / f"{number}-{after}")
            story.nodes.inject(Fault.kill(None, None, number, change, after=after))
            assert story.apply_until_killed(), where
            settle_and_check(story, where)
            assert nothing_was_created_twice(story), where


def test_killed_at_many_calls_of_any_kind_the_next_apply_converges(tmp_path: Path) -> None:
    calls = _calls_of_a_change(tmp_path / "clean")
    for number in range(1, calls + 1, 23):
        story = about_to_replace(tmp_path / str(number))
        story.nodes.inject(Fault.kill(None, None, number))
        assert story.apply_until_killed()
        settle_and_check(story, f"killed at call {number} of {calls}")


def _calls_of_a_change(folder: Path) -> int:
    story = about_to_replace(folder)
    before = len(story.nodes.calls)
    story.apply()
    return len(story.nodes.calls) - before


def test_a_reply_lost_at_any_effect_is_settled_by_looking_within_the_same_apply(steps: int, tmp_path: Path) -> None:
    for number in range(1, steps + 1):
        where = f"reply {number} of {steps} lost"
        story = about_to_replace(tmp_path / str(number))
        story.nodes.inject(Fault.lose_reply(None, None, number, change))
        assert Exit.OK == story.apply().exit, where
        assert nothing_was_created_twice(story), where
        settle_and_check(story, where)


@pytest.mark.parametrize("kind", [ErrorKind.REFUSED, ErrorKind.NO_SPACE, ErrorKind.TIMEOUT])
def test_an_effect_that_fails_ends_in_a_clear_code_and_the_next_apply_converges(
    steps: int, kind: ErrorKind, tmp_path: Path
) -> None:
    for number in range(1, steps + 1):
        where = f"effect {number} of {steps} fails with {kind}"
        story = about_to_replace(tmp_path / str(number))
        story.nodes.inject(Fault.fail(None, None, kind, number, change))
        applied = story.apply()
        assert applied.exit in {Exit.OK, Exit.UNCHANGED, Exit.NEEDS_A_PERSON}, where
        if applied.exit is Exit.UNCHANGED:
            assert {"pair": 2, "solo": 1} == story.running_lanes(), where
        if applied.exit is not Exit.OK:
            assert applied.failures, where
        settle_and_check(story, where)


def test_a_node_that_goes_dark_at_any_effect_is_told_and_the_next_apply_converges(steps: int, tmp_path: Path) -> None:
    for number in range(1, steps + 1, 2):
        where = f"node4 off at effect {number} of {steps}"
        story = about_to_replace(tmp_path / str(number))
        story.nodes.inject(Fault.do(None, None, lambda fleet: fleet.node("node4").power_off(), number, change))
        applied = story.apply()
        assert applied.exit is not Exit.OK or "quad" in story.running_lanes(), where
        story.nodes.node("node4").power_on()
        settle_and_check(story, where)


def test_no_gang_is_left_half_started_after_a_failed_boot(steps: int, tmp_path: Path) -> None:
    for node in ("node1", "node2", "node3", "node4"):
        story = about_to_replace(tmp_path / node)
        story.nodes.inject(Fault.fail(node, "start"))
        assert Exit.UNCHANGED == story.apply().exit
        assert {"pair": 2, "solo": 1} == story.running_lanes(), f"start on {node} failed"


def test_an_interrupt_at_any_moment_lets_go_in_time_and_the_next_apply_converges(tmp_path: Path) -> None:
    for tenths in range(0, 600, 23):
        story = about_to_replace(tmp_path / str(tenths))
        began_s = story.nodes.now_s
        applied = story.apply(stop_after_s=tenths / 10)
        if applied.exit is Exit.INTERRUPTED:
            assert story.nodes.now_s - began_s < tenths / 10 + 5.0
        settle_and_check(story, f"interrupted after {tenths / 10} s")
