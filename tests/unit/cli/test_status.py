"""`fleet status` as a command: what it reads, and when."""

import asyncio
import threading
from pathlib import Path

import pytest

import state
from reconciler import history
from reconciler.cli.main import run
from reconciler.cli.wiring import Wiring
from reconciler.core.exits import Exit
from reconciler.nodes.protocols import Node
from reconciler.threads import in_thread
from tests.lifecycle.harness import Story

SOLO = (("solo", "single-3"),)


def status(story: Story) -> int:
    return run(["status", "--file", str(story.folder / "fleet.yaml")], Wiring(lambda spec: story.nodes))


def test_the_record_is_read_once_and_while_the_nodes_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No node answers before the record is being read, and that does not end before a node has answered."""
    story = Story(tmp_path, SOLO)
    begun, answered, read, connect = threading.Event(), threading.Event(), history.remembered, story.nodes.connect
    reads: list[bool] = []

    def remembered(place: state.Location, now: float) -> history.Remembered:
        begun.set()
        reads.append(answered.wait(5.0))
        return read(place, now)

    async def answer(name: str, timeout_s: float) -> Node:
        async with asyncio.timeout(5.0):
            await in_thread(begun.wait)
        node = await connect(name, timeout_s)
        answered.set()
        return node

    monkeypatch.setattr(history, "remembered", remembered)
    monkeypatch.setattr(story.nodes, "connect", answer)
    assert Exit.OK == status(story)
    assert [True] == reads


def test_a_record_that_cannot_be_read_is_told_and_the_lanes_are_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    story = Story(tmp_path, SOLO)
    (tmp_path / ".fleet").mkdir()
    (tmp_path / ".fleet" / state.FILE).write_text("no database")
    assert Exit.OK == status(story)
    out, err = capsys.readouterr()
    assert "single-3/solo: missing" in out
    assert "fleet: holds are not shown: " in err
