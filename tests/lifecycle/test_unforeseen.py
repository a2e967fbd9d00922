"""Errors nobody foresaw: a step fails, and the run ends as for every other failure, with no gang half started."""

from pathlib import Path

import pytest

from reconciler.core.outcome import Exit
from reconciler.testing import Fault, Operation, SimulatedFleet
from tests.lifecycle.harness import QUAD, Story


def surprise(fleet: SimulatedFleet) -> None:
    raise LookupError(f"surprise \ud800 on {len(fleet.nodes)} nodes")


@pytest.mark.parametrize("operation", ["create", "stop", "start", "http", "rename"])
def test_an_unforeseen_error_is_a_failed_step(operation: Operation, tmp_path: Path) -> None:
    story = Story(tmp_path)
    assert Exit.OK == story.apply().exit
    story.place(QUAD)
    story.nodes.inject(Fault.do(None, operation, surprise, after=False))
    applied = story.apply()
    assert applied.exit in {Exit.UNCHANGED, Exit.NEEDS_A_PERSON}
    assert ["internal error, please report it: LookupError: surprise \\ud800 on 4 nodes"] == [
        failure.detail for failure in applied.failures
    ]
    assert "quad" not in story.running_lanes() or operation == "rename"
    story.nodes.heal()
    assert Exit.OK == story.apply().exit
    assert {"quad": 4} == story.running_lanes()
