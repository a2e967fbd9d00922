"""What keeps the agent from acting, and what it repairs, on simulated nodes in virtual time."""

import asyncio
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

import specs
from tests.lifecycle.commanding import Commands, Said
from tests.lifecycle.following import START_S, Followed
from tests.lifecycle.harness import PAIR_AND_SOLO, Story

NIGHTS = '{windows: [{allow: "0 22 * * *", for: 8h, zone: Europe/Berlin}]}'
FREEZE = '{heal: "on", windows: [{deny: "* * * * *", for: 1h, reason: a freeze}]}'
GUARDS = Path(__file__).parents[2] / "examples/gitops/guards.yaml"
RANK = "fleet-solo-r0-v1"


@pytest.fixture
def branch(tmp_path: Path) -> Followed:
    return Followed(tmp_path)


def placed(branch: Followed, guards: str, without: str = "") -> None:
    """Edit the spec: what the agent may do; without the placement of one lane."""
    branch.story.place(tuple(item for item in PAIR_AND_SOLO if without not in item))
    path = branch.story.folder / "fleet.yaml"
    path.write_text(f"{path.read_text()}gitops: {guards}\n")


def berlin(day: int, hour: int) -> float:
    """A moment of January 2027 on the clocks of Berlin."""
    return datetime(2027, 1, day, hour, tzinfo=ZoneInfo("Europe/Berlin")).timestamp()


def kill(branch: Followed, rank: str = RANK) -> None:
    """A rank dies, wherever it runs."""
    (node,) = (node for node in branch.story.nodes.nodes if node.container(rank))
    node.kill(rank)


def follow(branch: Followed, seconds: float) -> None:
    """An agent that runs for so long."""

    async def work() -> None:
        agent = branch.agent()
        asyncio.get_running_loop().call_later(seconds, agent.stopping.set)
        await agent.run()

    branch.run(work)


def test_a_commit_waits_for_its_window_and_says_until_when(branch: Followed) -> None:
    placed(branch, NIGHTS)
    branch.push()
    branch.later(berlin(20, 12) - START_S)
    assert 3 == branch.once()
    assert ({}, "waiting", berlin(20, 22)) == (
        branch.story.running_lanes(),
        branch.status["state"],
        branch.status["until_s"],
    )
    branch.later(10 * 3600)
    assert 0 == branch.once()
    assert {"pair": 2, "solo": 1} == branch.story.running_lanes()


def test_an_agent_that_waits_for_a_window_acts_when_it_opens(branch: Followed) -> None:
    placed(branch, NIGHTS)
    branch.push()
    branch.later(berlin(20, 22) - START_S - 150.0)
    follow(branch, 140.0)
    assert {} == branch.story.running_lanes()
    follow(branch, 240.0)
    assert {"pair": 2, "solo": 1} == branch.story.running_lanes()


def test_outside_of_what_is_allowed_a_dead_lane_is_repaired_and_a_commit_is_not_applied(branch: Followed) -> None:
    placed(branch, NIGHTS.replace("{windows", '{heal: "on", windows'))
    good = branch.push()
    branch.later(berlin(20, 23) - START_S)
    assert 0 == branch.once()
    branch.later(12 * 3600)
    branch.story.edit("stop_grace: 5s", "stop_grace: 6s\n    env: {A: b}")
    branch.push()
    kill(branch)
    branch.told.clear()
    branch.once()
    assert "gitops.healed" in branch.kinds
    assert {"pair": 2, "solo": 1} == branch.story.running_lanes()
    assert good == branch.memory.recalled().applied


def test_in_a_window_that_denies_not_even_a_dead_lane_is_repaired(branch: Followed) -> None:
    placed(branch, '{heal: "on"}')
    branch.push()
    assert 0 == branch.once()
    placed(branch, FREEZE)
    branch.push()
    assert 0 == branch.once()  # it changes nothing of what runs
    kill(branch)
    assert 3 == branch.once()
    assert {"pair": 2} == branch.story.running_lanes()
    assert "denied: a freeze" in branch.status["why"]


def test_a_lane_that_dies_again_and_again_is_repaired_more_and_more_seldom_and_then_given_up(branch: Followed) -> None:
    placed(branch, '{heal: "on", heal_budget: {times: 2, within: 6h, pause: 10m}}')
    branch.push()
    assert 0 == branch.once()
    kill(branch)
    branch.once()
    assert {"pair": 2, "solo": 1} == branch.story.running_lanes()
    kill(branch)
    assert 3 == branch.once()
    assert ("waiting", {"pair": 2}) == (branch.status["state"], branch.story.running_lanes())
    branch.later(600.0)
    branch.once()
    assert {"pair": 2, "solo": 1} == branch.story.running_lanes()
    kill(branch)
    branch.told.clear()
    branch.once()
    assert "gitops.gave_up" in branch.kinds
    branch.later(48 * 3600)
    branch.once()
    assert ({"pair": 2}, ["single-3/solo"]) == (
        branch.story.running_lanes(),
        [item["gang"] for item in branch.status["gave_up"]],
    )
    branch.memory.retry()
    branch.once()
    assert {"pair": 2, "solo": 1} == branch.story.running_lanes()


def test_another_commit_takes_a_given_up_lane_up_again(branch: Followed) -> None:
    placed(branch, '{heal: "on", heal_budget: {times: 1}}')
    branch.push()
    branch.once()
    for _ in range(2):
        kill(branch)
        branch.once()
    assert {"pair": 2} == branch.story.running_lanes()
    branch.push()
    assert 0 == branch.once()
    assert {"pair": 2, "solo": 1} == branch.story.running_lanes()


def test_a_commit_that_stops_more_than_the_budget_is_refused_and_names_the_lanes(branch: Followed) -> None:
    placed(branch, "{budget: {stops: 1}}")
    good = branch.push()
    assert 0 == branch.once()
    branch.story.edit("stop_grace: 5s", "stop_grace: 6s\n    env: {A: b}")
    branch.push()
    before = branch.story.created()
    assert 3 == branch.once()
    assert (before, good, "budget") == (
        branch.story.created(),
        branch.memory.recalled().applied,
        branch.status["bar"],
    )
    assert "pair-a/pair, single-3/solo" in branch.status["why"]


def test_a_protected_lane_is_not_stopped_by_the_agent(branch: Followed) -> None:
    placed(branch, "{protected: [solo]}")
    branch.push()
    assert 0 == branch.once()
    placed(branch, "{protected: [solo]}", without="solo")
    branch.push()
    assert 3 == branch.once()
    assert ("protected", {"pair": 2, "solo": 1}) == (branch.status["bar"], branch.story.running_lanes())


def test_a_mandatory_policy_binds_the_agent(branch: Followed) -> None:
    placed(branch, "{}")
    path = branch.story.folder / "fleet.yaml"
    path.write_text(f"{path.read_text()}policies: {{budget: {{stops: 0, level: mandatory}}}}\n")
    branch.push()
    assert 0 == branch.once()
    branch.story.edit("stop_grace: 5s", "stop_grace: 6s\n    env: {A: b}")
    branch.push()
    before = branch.story.created()
    assert 3 == branch.once()
    assert ("policy", before) == (branch.status["bar"], branch.story.created())


def test_no_lane_at_all_is_refused_unless_it_is_meant(branch: Followed) -> None:
    branch.push()
    assert 0 == branch.once()
    for guards, expected in (("{}", {"pair": 2, "solo": 1}), ("{allow_empty: true}", {})):
        branch.story.place(())
        path = branch.story.folder / "fleet.yaml"
        path.write_text(f"{path.read_text()}gitops: {guards}\n")
        branch.push()
        branch.once()
        assert expected == branch.story.running_lanes()


@pytest.fixture
def fleet(branch: Followed, capsys: pytest.CaptureFixture[str]) -> Commands:
    """Commands of a person at the files of the commit that the agent applied last."""
    branch.push()
    assert 0 == branch.once()
    branch.story.folder = branch.workplace.current
    return Commands(branch.story, capsys)


def test_suspended_the_agent_does_nothing_until_it_lapses(branch: Followed, fleet: Commands) -> None:
    said = fleet("suspend", "--for", "4h", "--reason", "a demo", "--work", str(branch.workplace.folder), "--json")
    assert (0, 14400.0) == (said.code, _lasts(said))
    kill(branch)
    told = said.json["suspension"]
    branch.later(told["since_s"] - branch.now_s)
    assert 3 == branch.once(heal="on")
    assert ({"pair": 2}, "waiting", told["until_s"]) == (
        branch.story.running_lanes(),
        branch.status["state"],
        branch.status["until_s"],
    )
    branch.later(4 * 3600)
    branch.once(heal="on")
    assert {"pair": 2, "solo": 1} == branch.story.running_lanes()


def _lasts(said: Said) -> float:
    told = said.json["suspension"]
    return round(float(told["until_s"]) - float(told["since_s"]), 3)


@pytest.mark.parametrize("verbs", [("suspend", "unsuspend"), ("gitops suspend", "gitops resume")])
def test_it_shows_everywhere_binds_no_person_and_is_ended_by_one(
    verbs: tuple[str, str], branch: Followed, fleet: Commands
) -> None:
    suspend, resume = (verb.split() for verb in verbs)
    work = ("--work", str(branch.workplace.folder))
    assert 0 == fleet(*suspend, "--reason", "a demo", *work).code
    kill(branch)
    assert "the agent does nothing: suspended by " in fleet("status").out
    assert "until it is ended: a demo" in fleet("status", "--json").json["suspended"]
    assert "that binds no person" in fleet("plan").err
    done = fleet("apply", "--yes")
    assert (0, 1) == (done.code, done.err.count("that binds no person"))
    assert {"pair": 2, "solo": 1} == branch.story.running_lanes()
    assert "The agent acts again. It was suspended by " in fleet(*resume, *work).out
    assert "The agent was not suspended" in fleet(*resume, *work).out
    assert "" == fleet("status", "--json").json["suspended"]


def test_a_job_that_nobody_watches_obeys_what_the_agent_obeys(branch: Followed, fleet: Commands) -> None:
    kill(branch)
    work = ("--work", str(branch.workplace.folder))
    fleet("suspend", "--reason", "a demo", *work)
    said = fleet("apply", "--unattended")
    assert (3, {"pair": 2}) == (said.code, branch.story.running_lanes())
    assert "refused: suspended by " in said.out
    assert "a demo" in fleet("apply", "--unattended", "--json").json["result"]["summary"]
    fleet("unsuspend", *work)
    assert 0 == fleet("apply", "--unattended").code
    assert {"pair": 2, "solo": 1} == branch.story.running_lanes()


@pytest.mark.parametrize(
    ("guards", "expected"),
    [
        (FREEZE, "denied: a freeze"),
        ("{budget: {stops: 0}}", "the budget is 0: single-3/solo"),
        ("{protected: [solo]}", "would stop protected lanes: single-3/solo"),
    ],
)
def test_windows_budget_and_protection_bind_a_job_and_no_person(
    guards: str, expected: str, branch: Followed, capsys: pytest.CaptureFixture[str]
) -> None:
    fleet = Commands(branch.story, capsys)
    assert 0 == fleet("apply", "--unattended").code
    placed(branch, guards, without="solo")
    plan = branch.story.folder / "saved.plan"
    assert 0 == fleet("plan", "--out", str(plan)).code
    for words in (("apply", "--unattended"), ("apply", str(plan), "--unattended")):
        said = fleet(*words)
        assert (3, True) == (said.code, expected in said.out)
    assert {"pair": 2, "solo": 1} == branch.story.running_lanes()
    assert 0 == fleet("apply", "--yes").code
    assert {"pair": 2} == branch.story.running_lanes()


def test_by_the_spec_it_reaches_the_same_record(branch: Followed, fleet: Commands) -> None:
    assert 0 == fleet("suspend", "--reason", "a demo").code
    found = branch.memory.suspended(branch.now_s)
    assert found is not None
    assert "a demo" == found.reason


def test_where_no_agent_ever_wrote_it_is_doubted(story_alone: Commands) -> None:
    said = story_alone("suspend", "--reason", "a demo")
    assert (0, True) == (said.code, "is it the right one? See --work" in said.err)
    assert "The agent acts again" in story_alone("unsuspend").out


@pytest.fixture
def story_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Commands:
    return Commands(Story(tmp_path), capsys)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ((), "Missing option '--reason'"),
        (("--reason", " "), "--reason: somebody will want to know why"),
        (("--reason", "x", "--for", "soon"), "--for: 'soon' is not a duration"),
        (("--reason", "x", "--for", "0s"), "--for: a suspension lasts longer than nothing"),
        (("--reason", "x", "--work", "/nonexistent"), "no agent has run in /nonexistent"),
    ],
)
def test_what_cannot_be_meant_is_an_error_and_suspends_nothing(
    words: tuple[str, ...], expected: str, branch: Followed, fleet: Commands
) -> None:
    said = fleet("suspend", *words)
    assert (1, True) == (said.code, expected in said.err)
    assert None is branch.memory.suspended(branch.now_s)


def test_the_example_of_guards_is_sound(tmp_path: Path) -> None:
    lane = "lanes: {front-chat: {engine: custom, image: 'ghcr.io/o/e@sha256:%s', entrypoint: [serve]}}" % ("a" * 64)
    (tmp_path / "guards.yaml").write_text(GUARDS.read_text())
    (tmp_path / "fleet.yaml").write_text(f"fleet: lab\ninclude: [guards.yaml]\n{lane}\n")
    told = specs.load(tmp_path / "fleet.yaml").gitops
    assert ("on", 2, 3, ["allow", "allow", "deny"]) == (
        *(told.heal, told.budget.stops, told.heal_budget.times),
        [item.kind for item in told.windows],
    )
