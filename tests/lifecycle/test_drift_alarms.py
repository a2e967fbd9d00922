"""What is no drift is not called drift, whatever went before; and what is, is called by its name alone."""

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reconciler.fleet import Fleet
from tests.lifecycle.commanding import Commands
from tests.lifecycle.harness import QUAD, Story
from tests.lifecycle.test_declared_off import declare

Scene = Callable[[Story, Commands], object]
Row = tuple[str, str, str]
"""Severity, address and field of a finding."""


@pytest.fixture
def story(tmp_path: Path) -> Story:
    made = Story(tmp_path / "spec")
    made.apply()
    return made


@pytest.fixture
def fleet(story: Story, capsys: pytest.CaptureFixture[str]) -> Commands:
    return Commands(story, capsys)


def rows(fleet: Commands) -> list[Row]:
    found: list[dict[str, Any]] = fleet("drift", "--json", "--no-record").json["findings"]
    return [(row["severity"], row["address"], row["field"]) for row in found]


def second(story: Story, fleet: Commands) -> None:
    """A second version of all lanes."""
    story.use(story.next_image)
    story.apply()


def gone_back(story: Story, fleet: Commands) -> None:
    second(story, fleet)
    assert 0 == fleet("rollback", "solo", "--yes").code


def spec_back(story: Story, fleet: Commands) -> None:
    second(story, fleet)
    story.use(story.image)
    story.apply()


def parked(story: Story, fleet: Commands) -> None:
    story.place((("pair", "pair-a"),))
    story.apply()
    text = (story.folder / "lanes.yaml").read_text()
    assert "  solo:\n" in text
    (story.folder / "lanes.yaml").write_text(text.replace("  solo:\n", "  solo:\n    parked: {reason: rests}\n"))


def held(story: Story, fleet: Commands) -> None:
    assert 0 == fleet("hold", "pair", "--reason", "a demo").code


def held_and_moved_on(story: Story, fleet: Commands) -> None:
    held(story, fleet)
    story.use(story.next_image)


def forgotten(story: Story, fleet: Commands) -> None:
    shutil.rmtree(story.folder / ".fleet")


def forgotten_after_going_back(story: Story, fleet: Commands) -> None:
    gone_back(story, fleet)
    forgotten(story, fleet)


def pulled_anew(story: Story, fleet: Commands) -> None:
    """The same digest once more, on every node."""
    for node in story.nodes.nodes:
        node.load_image(story.image.digest)


def rebooted(story: Story, fleet: Commands) -> None:
    story.nodes.node("node2").reboot()


def rebooted_and_applied(story: Story, fleet: Commands) -> None:
    rebooted(story, fleet)
    story.apply()


def off(story: Story, fleet: Commands) -> None:
    story.nodes.node("node2").power_off()
    declare(story, "node2")


def lost(story: Story, fleet: Commands) -> None:
    story.nodes.node("node2").power_off()


def let_pass(story: Story, fleet: Commands) -> None:
    story.nodes.add_foreign("node1", "jupyter")
    path = story.folder / "fleet.yaml"
    rule = 'drift: {ignore: [{class: host, field: "container *", reason: a guest, until: 2999-12-31}]}\n'
    path.write_text(path.read_text() + rule)


def other_lanes(story: Story, fleet: Commands) -> None:
    story.place(QUAD)
    story.apply()


NOT_KNOWN_AS_GONE_BACK = {
    ("degraded", "single-3/solo", "image"),
    ("notice", "single-3/solo@node3", "container fleet-solo-r0-v2"),
}
"""Without the record nobody knows that a version was put aside: the spec has moved on, and a try of it is left."""

SCENES: dict[str, tuple[Scene, set[Row]]] = {
    "a second version": (second, set()),
    "gone back by command: the spec still wants the other": (
        gone_back,
        {("degraded", "single-3/solo", "version")},
    ),
    "the spec went back": (spec_back, set()),
    "parked": (parked, set()),
    "held": (held, set()),
    "held, and the spec moved on": (
        held_and_moved_on,
        {("degraded", "pair-a/pair", "image"), ("degraded", "single-3/solo", "image")},
    ),
    "the state is deleted": (forgotten, set()),
    "gone back, and the state is deleted": (forgotten_after_going_back, NOT_KNOWN_AS_GONE_BACK),
    "pulled anew": (pulled_anew, set()),
    "a node rebooted": (rebooted, {("outage", "pair-a/pair/1@node2", "state")}),
    "a node rebooted, then applied": (rebooted_and_applied, set()),
    "a node is off": (off, set()),
    "a node is lost": (lost, {("degraded", "node2", "reach")}),
    "containers of others that are let pass": (let_pass, set()),
    "other lanes": (other_lanes, set()),
}


@pytest.mark.parametrize("name", SCENES)
def test_a_scene_has_its_findings_and_no_other(fleet: Commands, story: Story, name: str) -> None:
    make, expected = SCENES[name]
    make(story, fleet)
    assert expected == set(rows(fleet))


def test_another_controller_with_a_state_of_its_own_sees_the_same_nodes(
    fleet: Commands, story: Story, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FLEET_STATE", str(tmp_path / "other"))
    assert [] == rows(fleet)
    rebooted(story, fleet)
    assert [("outage", "pair-a/pair/1@node2", "state")] == rows(fleet)


@pytest.mark.parametrize(
    ("after_s", "expected"),
    [
        (1.0, {("degraded", "pair-a/pair", "image"), ("degraded", "single-3/solo", "image")}),
        (3.0, {("degraded", "pair-a/pair", "health"), ("degraded", "single-3/solo", "health")}),
        (20.0, {("degraded", "pair-a/pair", "health"), ("degraded", "single-3/solo", "health")}),
        (40.0, set()),
    ],
    ids=["it brings the image", "the lanes begin to boot", "they boot on", "it is done"],
)
def test_a_lane_that_somebody_boots_is_no_outage_and_has_one_finding(
    story: Story, after_s: float, expected: set[Row]
) -> None:
    story.use(story.next_image)

    async def work(fleet: Fleet) -> list[Row]:
        running = asyncio.create_task(fleet.apply(fleet.plan(await fleet.observe())))
        await asyncio.sleep(after_s)
        report = await fleet.drift(await fleet.observe())
        await running
        return [(item.severity, item.address, item.field) for item in report.findings]

    assert expected == set(story.run(work))
