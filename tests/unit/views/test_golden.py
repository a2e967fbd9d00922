"""What people and programs see, whole. Read the files in `golden/`: they are the specification of the views."""

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from reconciler.core.events import Event, Interrupted, RunEnded, RunStarted, StepEnded, StepProgress, StepStarted
from reconciler.core.machine import Status
from reconciler.core.observed import NodeFacts, Observed, Unknown, UnknownKind
from reconciler.core.plan import Plan, Refusal, plan_json
from reconciler.core.stale import sight, stale_steps
from reconciler.views.event_text import event_lines, step_words
from reconciler.views.plan_markdown import plan_markdown
from reconciler.views.plan_stale import stale_text
from reconciler.views.plan_text import plan_text, total
from reconciler.views.status_text import status_text
from tests.unit.core.build import desired, plan, step, world
from tests.unit.views import scenes
from tests.unit.views.golden import assert_golden
from tests.unit.views.scenes import BOOTS, QUAD, SOLO

PLANS: dict[str, Callable[[], Plan]] = {
    "demo": scenes.demo,
    "everything": scenes.everything,
    "refused": scenes.refused,
    "hostile": scenes.hostile,
    "images": scenes.images,
    "sync": scenes.sync,
    "withheld": scenes.withheld,
    "settled": lambda: plan(desired(SOLO), world(SOLO)),
}


@pytest.mark.parametrize("name", PLANS)
def test_a_plan_as_text(name: str) -> None:
    assert_golden(f"plan_{name}.txt", plan_text(PLANS[name](), BOOTS, 0.94))


@pytest.mark.parametrize("name", PLANS)
def test_a_plan_as_markdown(name: str) -> None:
    assert_golden(f"plan_{name}.md.txt", plan_markdown(PLANS[name](), BOOTS))


def test_a_plan_as_json() -> None:
    assert_golden("plan_demo.json.txt", plan_json(scenes.demo()) + "\n")


def test_what_of_a_saved_plan_is_stale() -> None:
    made, seen = scenes.split(), world(scenes.SPLIT)
    now = {name: replace(facts, boot_id="next") for name, facts in seen.nodes.items() if isinstance(facts, NodeFacts)}
    found = stale_steps(made, sight(made, seen), Observed(now, {}))
    told = stale_text(found[:2], ["c/solo"]) + stale_text(found[:1], []) + stale_text(found * 3, [])
    assert_golden("stale.txt", told)


def test_the_status_of_a_fleet() -> None:
    assert_golden("status.txt", status_text(scenes.everything_status()))


def events() -> Iterator[Event]:
    made = scenes.demo()
    pull, create, stop, start, verify = (
        step(made, f"{QUAD.address}/stage/dgx1/pull"),
        step(made, f"{QUAD.address}/stage/dgx4/create"),
        step(made, "single-3/qwen-coder/cut/dgx3/stop/fleet-qwen-coder-r0-v1"),
        step(made, f"{QUAD.address}/boot/dgx1/start"),
        step(made, f"{QUAD.address}/verify/verify"),
    )
    yield RunStarted("8a2f01c4de77", made)
    yield StepStarted(pull)
    yield StepProgress(pull, "layer 3 of 12", 1024, 4096)
    yield StepEnded(pull, Status.APPLIED, "14.2 GiB, passes it on to dgx2 dgx3", 161.2)
    yield StepStarted(create)
    yield StepEnded(create, Status.NOOP, "", 0.1)
    yield StepStarted(stop)
    yield StepEnded(stop, Status.UNREACHABLE, "no route to host", 10.0)
    yield StepEnded(start, Status.STALE, "fleet-x is gone from dgx1", 0.0)
    logs = ("loading weights", "\x1b[31mCUDA error: out of memory\x1b[0m", "")
    yield StepEnded(verify, Status.FAILED, "rank 2 on dgx3 exited 137 (out of memory)", 190.0, logs)
    yield Interrupted((pull, verify))
    yield Interrupted(())
    yield RunEnded("8a2f01c4de77", 7, "4nodes-switch/mimo26-flash-4x: failed\nmend what is shown above")


def test_an_apply_as_lines() -> None:
    assert_golden("events.txt", "".join(f"{line}\n" for event in events() for line in event_lines(event)))


def test_progress_says_nothing_in_lines() -> None:
    pull = step(scenes.demo(), f"{QUAD.address}/stage/dgx1/pull")
    assert [] == list(event_lines(StepProgress(pull, "layer 3 of 12", 1024, 4096)))


def test_a_refusal_that_is_about_no_lane_names_none() -> None:
    made = replace(
        plan(desired(SOLO), world(SOLO)), refusals=(Refusal("empty", "", None, "nothing is placed", "say so"),)
    )
    text = plan_text(made, BOOTS)
    assert "  x nothing is placed\n      say so\n" in text
    assert text.endswith("Plan: refused.\n")
    assert "- **refused**: nothing is placed\n" in plan_markdown(made, BOOTS)


def test_that_no_node_answered_is_not_called_no_changes() -> None:
    away = Unknown("dgx3", UnknownKind.TIMEOUT, "no answer")
    made = replace(plan(desired(SOLO), world(SOLO)), changes=(), observed=(), unknown=(away,))
    assert "No node answered, so nothing is known of what would change." == total(made)


def test_an_image_of_which_no_byte_is_missing_is_named() -> None:
    pull = step(scenes.demo(), f"{QUAD.address}/stage/dgx1/pull")
    assert step_words(replace(pull, estimate_bytes=0)).startswith("naming ghcr.io/")
