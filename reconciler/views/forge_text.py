"""What a forge is told of a commit: a status per fleet and per placement, and one comment, from a plan and its events.

A status is one short line with a state; the comment has the outcome first and the plan below it. Texts are plain here:
each forge cuts them to what it takes.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from reconciler.core.estimates import NOTHING, Estimates
from reconciler.core.events import Event, RunEnded, RunStarted, StepEnded
from reconciler.core.exits import Exit
from reconciler.core.machine import BAD, GOOD
from reconciler.core.plan import Kind, Phase, Plan
from reconciler.views.event_text import step_words
from reconciler.views.markdown import cell, code
from reconciler.views.plan_markdown import BUDGET, plan_markdown
from reconciler.views.plan_text import Boots, total
from reconciler.views.words import shortened

State = Literal["pending", "success", "failure", "error"]
"""The states of GitHub's commit statuses; the other forges' are made of them."""

STATUSES = 100
"""Of one commit: the fleet's, and what is bad before what is well. Nobody reads more."""
FAILURES, LOG_LINES, LINE = 8, 4, 300
"""Of a comment: failed steps, last log lines of each, and characters of a line. The report of the run has all."""

_ENDS: dict[int, tuple[State, str]] = {
    Exit.OK: ("success", "applied"),
    Exit.ERROR: ("error", "not applied"),
    Exit.REFUSED: ("failure", "refused"),
    Exit.UNREACHABLE: ("pending", "applied where nodes answer"),
    Exit.LEASE_HELD: ("pending", "waits: somebody else changes these nodes"),
    Exit.UNCHANGED: ("failure", "failed: the fleet serves what it served before"),
    Exit.NEEDS_A_PERSON: ("failure", "failed: a person has to look"),
    Exit.INTERRUPTED: ("pending", "interrupted: the next run goes on"),
}
"""How a run stands by its exit code. What is tried again by itself is pending."""


@dataclass(frozen=True)
class CommitStatus:
    """How a commit stands with one thing: `context` is "fleet/NAME" or "fleet/NAME/CLUSTER/LANE"."""

    context: str
    state: State
    description: str


def fleet_context(fleet: str) -> str:
    """What the status of a whole fleet is named."""
    return f"fleet/{fleet}"


def fleet_status(fleet: str, state: State, words: str) -> CommitStatus:
    """The status of a fleet where there is no plan: a spec with a fault, a closed window, a suspended agent."""
    return CommitStatus(fleet_context(fleet), state, words)


def commit_statuses(plan: Plan, events: Iterable[Event] = ()) -> tuple[CommitStatus, ...]:
    """The fleet's status first, then those of placements, what failed before what waits before what is well.

    `events`: of the run of this plan, as far as it has come; none: nothing is carried out yet. A run that ends before
    its first event (a lease that is held, say) is told as a `RunEnded` all the same.
    """
    seen = tuple(events)
    gangs = sorted(_gangs(plan, seen), key=lambda item: ("failure", "error", "pending", "success").index(item.state))
    return (_fleet(plan, seen, gangs), *gangs)[:STATUSES]


def _fleet(plan: Plan, events: Sequence[Event], gangs: Sequence[CommitStatus]) -> CommitStatus:
    end = _end(events)
    if end is not None:
        state, words = _standing(end)
        if state == "success" and any(item.state != "success" for item in gangs):
            state, words = "pending", "applied in part"
        told = " ".join(end.summary.split())
        return fleet_status(plan.fleet, state, f"{words}: {told}" if told and told != words else words)
    if plan.refusals:
        return fleet_status(plan.fleet, "failure", f"refused: {plan.refusals[0].summary}")
    if plan.forbidden:
        return fleet_status(plan.fleet, "failure", f"refused by policy {plan.forbidden[0].policy}: {plan.forbidden[0]}")
    if plan.is_settled:
        return fleet_status(plan.fleet, "success", "in sync: nothing to do")
    doing = "applying: " if _is_begun(events) else ""
    return fleet_status(plan.fleet, "pending", f"{doing}{total(plan)} Plan {plan.id}")


def _gangs(plan: Plan, events: Sequence[Event]) -> Iterator[CommitStatus]:
    """Of placements: a lane that nobody places any more is told by the fleet's own."""
    refused = {item.gang: item.summary for item in plan.refusals if item.gang}
    withheld = {item.gang: item for item in plan.withheld}
    told: dict[str, tuple[State, str]] = dict.fromkeys(plan.unchanged, ("success", "in sync"))
    told |= {item.gang: ("pending", f"deferred: {item.reason}") for item in plan.deferred}
    for change in plan.changes:
        if change.kind not in {Kind.STOP, Kind.CLEAN}:
            told[change.gang] = _change(plan, change.gang, change.kind, events)
    told |= {gang: ("failure", f"refused: {summary}") for gang, summary in refused.items()}
    for gang, away in withheld.items():
        if gang in told:
            told[gang] = ("failure" if away.kind == "quarantine" else "pending", f"withheld: {away.why}")
    for gang in sorted(told):
        yield CommitStatus(f"{fleet_context(plan.fleet)}/{gang}", *told[gang])


def _change(plan: Plan, gang: str, kind: Kind, events: Sequence[Event]) -> tuple[State, str]:
    """How one gang that changes stands."""
    ended = [event for event in events if isinstance(event, StepEnded) and event.step.gang == gang]
    bad = next((item for item in ended if item.status in BAD and item.step.phase is not Phase.ROLLBACK), None)
    if bad is not None:
        return "failure", f"{kind} failed: {step_words(bad.step)}: {bad.detail or bad.status}"
    done = {item.step.id for item in ended if item.status in GOOD}
    end = _end(events)
    if all(step.id in done for step in plan.steps if step.gang == gang) and end is not None:
        return "success", f"{kind}: done and proved" if kind is not Kind.SYNC else "its image is there"
    if end is None:
        return "pending", f"{kind} is under way" if _is_begun(events) else f"{kind} is to be done"
    state, words = _standing(end)
    return ("pending" if state in {"success", "pending"} else "error"), f"{kind} was not done: {words}"


def _standing(end: RunEnded) -> tuple[State, str]:
    return _ENDS.get(end.exit_code, ("error", "not applied"))


def _is_begun(events: Sequence[Event]) -> bool:
    return any(isinstance(event, RunStarted) for event in events)


def _end(events: Sequence[Event]) -> RunEnded | None:
    return next((event for event in reversed(events) if isinstance(event, RunEnded)), None)


def commit_comment(
    plan: Plan, boots: Boots, events: Iterable[Event] = (), estimates: Estimates = NOTHING, link: str = ""
) -> str:
    """The comment of a commit: its hidden mark, the outcome as far as there is one, and the plan.

    `link`: where the whole report is.
    """
    seen = tuple(events)
    lines = [mark(plan.fleet), *_outcome(plan, seen)]
    lines += [f"[The whole report]({link})", ""] if link else []
    head = "".join(f"{line}\n" for line in lines)
    return head + plan_markdown(plan, boots, estimates, budget=BUDGET - len(head.encode("utf-8", "replace")))


def mark(fleet: str) -> str:
    """The first line of the comments about a fleet: hidden, and what the comment to edit is found by."""
    return f"<!-- {fleet_context(fleet)} -->"


def _outcome(plan: Plan, events: Sequence[Event]) -> Iterator[str]:
    end = _end(events)
    if end is None:
        if _is_begun(events):
            yield from (f"### fleet {cell(plan.fleet)}: applying now", "")
        return
    yield from (f"### fleet {cell(plan.fleet)}: {_standing(end)[1]}", "")
    for line in end.summary.splitlines()[:FAILURES]:
        yield f"{cell(shortened(line, LINE))}  "
    yield ""
    failed = [event for event in events if isinstance(event, StepEnded) and event.status in BAD]
    for item in failed[:FAILURES]:
        yield f"- {code(item.step.gang)}: {cell(shortened(f'{step_words(item.step)}: {item.detail}', LINE))}"
        yield from (f"  - {code(shortened(line, LINE))}" for line in item.logs[-LOG_LINES:] if line.strip())
    if len(failed) > FAILURES:
        yield f"- and {len(failed) - FAILURES} more failed steps"
    if failed:
        yield ""
