"""The Python API as docs/api.md tells it: its examples run, here on simulated nodes."""

import asyncio
import functools
import json
import re
from pathlib import Path

import pytest

import reconciler
from reconciler.core.events import Event
from reconciler.fleet import Fleet
from reconciler.testing import run_simulated
from tests.lifecycle.harness import Story

PAGE = (Path(__file__).parents[2] / "docs/api.md").read_text(encoding="utf-8")
FIRST, SECOND = re.findall(r"```python\n(.*?)```", PAGE, re.S)


@pytest.fixture
def story(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Story:
    """The examples are run in its folder, and reach its nodes."""
    story = Story(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Fleet, "load", lambda path: _load(path, lambda spec: story.nodes))
    monkeypatch.setattr(asyncio, "run", functools.partial(run_simulated, seed=1))
    return story


_load = Fleet.load


def test_the_first_example_applies_and_tells_of_it(story: Story, capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(FIRST, "docs/api.md", "exec"), {})
    lines = capsys.readouterr().out.splitlines()
    assert ["boot pair-a/pair wanted, not running", "boot single-3/solo wanted, not running"] == lines[:2]
    assert ("run.started", "run.ended") == (lines[2], lines[-1])
    assert {"pair": 2, "solo": 1} == story.running_lanes()


def test_the_second_example_looks_for_drift_and_writes_events(story: Story, capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(SECOND, "docs/api.md", "exec"), {})
    assert "2 findings" == capsys.readouterr().out.strip()
    found = [json.loads(line) for line in (story.folder / "events.ndjson").read_text().splitlines()]
    assert list(range(1, len(found) + 1)) == [event["sequence"] for event in found]
    assert 0 == found[-1]["event"]["exit_code"]


def test_every_stable_name_is_there() -> None:
    assert [] == [name for name in reconciler.__all__ if getattr(reconciler, name, None) is None]
    assert [] == [name for name in ("Fleet", "Recorder", "Exit") if name not in reconciler.__all__]
    with pytest.raises(AttributeError):
        reconciler.nothing  # noqa: B018


@pytest.mark.parametrize("kind", ["run.started", "step.started", "step.progress", "step.ended", "run.ended"])
def test_a_listener_that_raises_stops_no_run(tmp_path: Path, kind: str, caplog: pytest.LogCaptureFixture) -> None:
    story = Story(tmp_path)
    story.apply()
    story.use(story.next_image)
    heard: list[str] = []

    def listen(event: Event) -> None:
        heard.append(event.KIND)
        if event.KIND == kind:
            raise RuntimeError("no such pager")

    assert (0, {"pair": 2, "solo": 1}) == (story.apply(listen).exit, story.running_lanes())
    assert "run.ended" == heard[-1]
    assert f"a listener failed at an event ({kind})" in caplog.text
