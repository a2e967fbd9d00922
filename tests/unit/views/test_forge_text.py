"""What a forge is told of a commit: before, during and after a run, whatever came of it."""

import re
from dataclasses import replace

import pytest

from reconciler.core.events import Event, RunEnded, RunStarted, StepEnded, StepStarted
from reconciler.core.exits import Exit
from reconciler.core.machine import Status
from reconciler.core.objection import Level, Objection
from reconciler.core.plan import Plan
from reconciler.views.forge_text import commit_comment, commit_statuses, fleet_status
from tests.unit.views import scenes


def ended(plan: Plan, *, bad: int | None = None, code: Exit = Exit.OK, summary: str = "done") -> list[Event]:
    """A run of a plan: every step went well until the one of this number."""
    going = plan.steps if bad is None else plan.steps[:bad]
    events: list[Event] = [RunStarted("r1", plan), *(StepStarted(step) for step in going)]
    events += [StepEnded(step, Status.APPLIED, "", 1.0) for step in going]
    if bad is not None:
        events.append(StepEnded(plan.steps[bad], Status.FAILED, "exited 137", 1.0, ("loading", "killed ```")))
    return [*events, RunEnded("r1", code, summary)]


def states(plan: Plan, events: list[Event] | None = None) -> dict[str, str]:
    return {item.context: item.state for item in commit_statuses(plan, events or ())}


def test_before_a_run_what_is_to_be_done_is_pending() -> None:
    plan = scenes.demo()
    found = commit_statuses(plan)
    assert ["fleet/lab", f"fleet/lab/{scenes.QUAD.address}"] == [item.context for item in found]
    assert {"pending"} == {item.state for item in found}
    assert plan.id in found[0].description


def test_after_a_run_that_went_well_everything_is() -> None:
    plan = scenes.demo()
    assert {"success"} == set(states(plan, ended(plan)).values())


def test_a_settled_fleet_is_well_without_a_run() -> None:
    assert {"success"} == set(states(scenes.settled()).values())


@pytest.mark.parametrize(
    ("code", "state"),
    [
        (Exit.ERROR, "error"),
        (Exit.REFUSED, "failure"),
        (Exit.UNREACHABLE, "pending"),
        (Exit.LEASE_HELD, "pending"),
        (Exit.UNCHANGED, "failure"),
        (Exit.NEEDS_A_PERSON, "failure"),
        (Exit.INTERRUPTED, "pending"),
    ],
)
def test_every_exit_code_has_its_state(code: Exit, state: str) -> None:
    plan = scenes.demo()
    fleet, lane = commit_statuses(plan, [RunEnded("", code, "so it is")])
    assert state == fleet.state
    assert ("error" if state == "failure" else state) == lane.state  # of itself it has not failed


def test_the_lane_that_failed_is_told_before_the_others_and_with_its_step() -> None:
    plan = scenes.everything()
    number = next(index for index, step in enumerate(plan.steps) if step.gang == "c/changed" and step.op == "start")
    found = commit_statuses(plan, ended(plan, bad=number, code=Exit.UNCHANGED, summary="c/changed: rolled back"))
    assert ("fleet/lab", "failure") == (found[0].context, found[0].state)
    assert ("fleet/lab/c/changed", "failure") == (found[1].context, found[1].state)
    assert "exited 137" in found[1].description
    assert "success" == found[-1].state


def test_what_is_withheld_refused_or_deferred_is_told_so() -> None:
    held = {item.context: item for item in commit_statuses(scenes.withheld())}
    quad, solo = held[f"fleet/lab/{scenes.QUAD.address}"], held["fleet/lab/c/solo"]
    assert ("pending", "failure") == (quad.state, solo.state)
    assert "a demo until eight" in quad.description
    assert "failure" in states(scenes.refused()).values()
    deferred = {item.description.partition(":")[0] for item in commit_statuses(scenes.everything())}
    assert "deferred" in deferred


def test_what_a_policy_forbids_is_told_before_anything_is_tried() -> None:
    against = Objection("stops a protected lane", "c/changed", policy="protected")
    made = replace(scenes.everything(), objections=(against,))
    (fleet, *_) = commit_statuses(made)
    assert ("failure", True) == (fleet.state, "policy protected" in fleet.description)
    advice = replace(made, objections=(replace(against, level=Level.ADVISORY),))
    assert "pending" == commit_statuses(advice)[0].state


def test_a_lane_that_goes_has_no_status_of_its_own() -> None:
    assert not any("c/gone" in context for context in states(scenes.everything()))


def test_the_comment_has_its_mark_then_the_outcome_then_the_plan() -> None:
    plan = scenes.demo()
    events = ended(plan, bad=len(plan.steps) - 1, code=Exit.NEEDS_A_PERSON, summary="it hangs\nrun `fleet resume`")
    text = commit_comment(plan, {}, events, link="https://ci.example.com/7")
    assert text.startswith("<!-- fleet/lab -->\n### fleet lab: failed: a person has to look\n")
    assert text.index("exited 137") < text.index("https://ci.example.com/7") < text.index("### fleet plan: lab")
    assert 2 == text.count("```")  # a log line opens no block


def test_no_outcome_and_no_plan_makes_a_comment_too_long() -> None:
    plan = scenes.large(300)
    failed = [StepEnded(step, Status.FAILED, "x" * 9000, 1.0, ("y" * 9000,) * 50) for step in plan.steps]
    text = commit_comment(plan, {}, [*failed, RunEnded("r", Exit.NEEDS_A_PERSON, "z\n" * 9000)])
    assert len(text.encode()) <= 65_535


def test_hostile_names_start_no_markup() -> None:
    plan = scenes.hostile()
    events = [StepEnded(step, Status.FAILED, scenes.HOSTILE, 1.0, (scenes.HOSTILE,)) for step in plan.steps]
    text = commit_comment(replace(plan, fleet="lab"), {}, [*events, RunEnded("r", Exit.UNCHANGED, scenes.HOSTILE)])
    outcome = text.partition("### fleet plan")[0]
    assert "<b>" not in re.sub(r"`[^`]*`", "", outcome)
    assert "\x1b" not in text


def test_a_fleet_without_a_plan_has_a_status() -> None:
    found = fleet_status("lab", "error", "fleet.yaml:3:1: unknown key 'lame'")
    assert ("fleet/lab", "error") == (found.context, found.state)
