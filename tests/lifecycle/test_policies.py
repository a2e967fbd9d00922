"""What policies object to: shown in every plan, refused before anything is touched, never passed by breaking."""

from pathlib import Path

import pytest

from reconciler import policing
from tests.lifecycle.commanding import Commands
from tests.lifecycle.harness import Story

OURS = """
from reconciler.core.policies import Level, Objection, Policy

def few(context):
    for change in context.plan.changes:
        if len(change.nodes) > 1:
            yield Objection(f"takes {len(change.nodes)} nodes", change.gang, "ask the owner")

FEW = Policy("few-nodes", "Does every lane take one node?", few)
"""


@pytest.fixture
def story(tmp_path: Path) -> Story:
    return Story(tmp_path)


@pytest.fixture
def fleet(story: Story, capsys: pytest.CaptureFixture[str]) -> Commands:
    return Commands(story, capsys)


def police(story: Story, policies: str, code: str = OURS) -> None:
    path = story.folder / "fleet.yaml"
    path.write_text(f"{path.read_text()}\npolicies: {policies}\n")
    (story.folder / "ours.py").write_text(code)


def test_a_mandatory_objection_refuses_before_anything_is_touched(fleet: Commands, story: Story) -> None:
    police(story, "{files: [ours.py]}")
    done = fleet("apply", "--yes")
    assert (3, ()) == (done.code, story.nodes.mutations)
    assert "x few-nodes (mandatory): pair-a/pair: takes 2 nodes\n      ask the owner\n" in done.out
    assert "Apply this plan?" not in done.out


def test_what_it_is_not_about_goes_on(fleet: Commands, story: Story) -> None:
    police(story, "{files: [ours.py]}")
    assert (0, {"solo": 1}) == (fleet("apply", "--yes", "--lane", "solo").code, story.running_lanes())


def test_the_plan_shows_it_in_every_form_and_ends_with_three(fleet: Commands, story: Story) -> None:
    police(story, "{files: [ours.py]}")
    text, markdown, told = fleet("plan"), fleet("plan", "--format", "markdown"), fleet("plan", "--json")
    assert [3, 3, 3] == [text.code, markdown.code, told.code]
    assert "- **policy few-nodes** (mandatory) `pair-a/pair`: takes 2 nodes" in markdown.out
    (objection,) = told.json["objections"]
    assert ("few-nodes", "mandatory", "pair-a/pair") == tuple(objection[key] for key in ("policy", "level", "gang"))


def test_objections_change_no_plan(fleet: Commands, story: Story) -> None:
    before = fleet("plan", "--json").json
    police(story, "{files: [ours.py]}")
    after = fleet("plan", "--json").json
    assert (before["id"], before["spec"], before["steps"]) == (after["id"], after["spec"], after["steps"])


def test_an_advisory_one_is_shown_and_the_apply_goes_on(fleet: Commands, story: Story) -> None:
    police(story, "{files: [ours.py], levels: {few-nodes: advisory}}")
    done = fleet("apply", "--yes")
    assert (0, {"pair": 2, "solo": 1}) == (done.code, story.running_lanes())
    assert "policies advise\n  ! few-nodes (advisory): pair-a/pair: takes 2 nodes" in done.out


def test_a_saved_plan_is_held_against_the_policies_of_today(fleet: Commands, story: Story, tmp_path: Path) -> None:
    fleet("plan", "--out", str(tmp_path / "plan.json"))
    police(story, "{files: [ours.py]}")
    assert (3, ()) == (fleet("apply", str(tmp_path / "plan.json"), "--yes").code, story.nodes.mutations)


def test_the_api_refuses_as_the_command_does(story: Story) -> None:
    police(story, "{files: [ours.py]}")
    applied = story.apply()
    assert (3, ()) == (int(applied.exit), story.nodes.mutations)
    assert "refused by policy few-nodes: pair-a/pair: takes 2 nodes\nask the owner" == applied.summary


def test_nobody_is_asked_when_there_is_nothing_to_do(fleet: Commands, story: Story) -> None:
    assert 0 == fleet("apply", "--yes").code
    police(story, "{files: [ours.py]}", "raise RuntimeError('asked')")
    assert 0 == fleet("plan").code


UNNAMED = OURS.replace("few-nodes", "of-no-level")
TOLD = 'f"takes {len(change.nodes)} nodes"'
ENDLESS = OURS.replace("for change in context.plan.changes:", "while True:").replace("if len(change.nodes) > 1", "if 1")
BROKEN = {
    "raise ValueError('no such rack')": "ours.py: the policy itself is broken: ours.py:1: ValueError: no such rack",
    "x = (": "ours.py:1: SyntaxError: ",
    "x = 1": "ours.py: the policy itself is broken: it has no Policy at its top level",
    OURS.replace("yield Objection(", "yield str("): "few-nodes: the policy itself is broken: TypeError: ",
    OURS.replace("yield Objection(", "yield tuple("): "few-nodes: the policy itself is broken: TypeError: ",
    OURS.replace("few-nodes", "budget"): "budget: the policy itself is broken: there is a policy budget already",
    "import sys\nsys.exit(0)": "ours.py:2: SystemExit: 0",
    OURS.replace("    for ", "    raise KeyboardInterrupt\n    for "): "broken: RuntimeError: KeyboardInterrupt()",
    "import asyncio\nraise asyncio.CancelledError": "broken: ours.py:2: RuntimeError: CancelledError()",
    UNNAMED.replace(", few)", ", few, 'strict')"): "broken: its level is 'strict'",
    UNNAMED.replace(", few)", ", few, None)"): "broken: its level is None, not mandatory or advisory",
    OURS.replace(TOLD, "5"): "few-nodes: the policy itself is broken: it yields an Objection whose summary is int, not",
    OURS.replace('"few-nodes"', "7"): "ours.py: the policy itself is broken: it has a policy whose id is 7",
    ENDLESS.replace(f"{TOLD}, change.gang", "'no'"): "it yields more than 10000 objections",
    OURS.replace(
        "    for ", "    class Odd(Exception):\n        __str__ = 1\n    raise Odd\n    for "
    ): "broken: Odd\n",
}


@pytest.mark.parametrize("code", BROKEN)
def test_a_policy_that_breaks_is_no_pass(fleet: Commands, story: Story, code: str) -> None:
    police(story, "{files: [ours.py], levels: {few-nodes: advisory, ours.py: advisory}}", code)
    done = fleet("apply", "--yes")
    assert (3, ()) == (done.code, story.nodes.mutations)
    assert BROKEN[code] in done.out.replace(" (mandatory)", "")


def test_a_level_that_is_written_as_a_text_weighs_what_it_says(fleet: Commands, story: Story) -> None:
    police(story, "{files: [ours.py]}", OURS.replace(", few)", ", few, 'mandatory')"))
    assert (3, ()) == (fleet("apply", "--yes").code, story.nodes.mutations)


def test_what_a_policy_prints_is_no_part_of_a_plan(fleet: Commands, story: Story) -> None:
    police(story, "{files: [ours.py]}", OURS.replace("    for ", "    print('few of', context.now_s)\n    for "))
    told = fleet("plan", "--json")
    assert (1, True) == (len(told.json["objections"]), "few of" in told.err)


def test_a_policy_may_be_made_of_dataclasses(fleet: Commands, story: Story) -> None:
    kind = "from __future__ import annotations\nfrom dataclasses import dataclass\n"
    police(story, "{files: [ours.py]}", f"{kind}@dataclass\nclass Limit:\n    nodes: int\n{OURS}")
    assert "few-nodes (mandatory): pair-a/pair: takes 2 nodes" in fleet("plan").out


def test_a_policy_that_does_not_answer_is_no_pass(
    fleet: Commands, story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(policing, "ANSWER_S", 0.05)
    police(
        story,
        "{files: [ours.py]}",
        "import time\n" + OURS.replace("    for change", "    time.sleep(1)\n    for change"),
    )
    assert "few-nodes (mandatory): the policy itself is broken: TimeoutError: no answer in 0.05 s" in fleet("plan").out


def test_a_file_that_is_not_there_is_no_pass(fleet: Commands, story: Story) -> None:
    police(story, "{files: [theirs.py]}")
    assert "theirs.py (mandatory): the policy itself is broken: theirs.py: FileNotFoundError" in fleet("plan").out


def test_nothing_is_left_beside_the_spec(fleet: Commands, story: Story) -> None:
    police(story, "{files: [ours.py]}")
    before = set(story.folder.rglob("*"))
    fleet("plan")
    assert set() == set(story.folder.rglob("*.pyc")) | (set(story.folder.rglob("*")) - before)


def test_a_budget_limits_the_lanes_that_stop(fleet: Commands, story: Story) -> None:
    fleet("apply", "--yes")
    story.use(story.next_image)
    police(story, "{budget: {stops: 1}}")
    done = fleet("apply", "--yes")
    assert 3 == done.code
    told = "it stops 2 lanes, and 1 may stop in one run: pair-a/pair, single-3/solo"
    assert f"x budget (mandatory): {told}\n      go step by step: `fleet apply --lane NAME`\n" in done.out
    assert 0 == fleet("apply", "--yes", "--lane", "solo").code
