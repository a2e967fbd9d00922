"""Apply events as plain lines, for logs and pipes."""

from collections.abc import Iterator, Mapping

from reconciler.core.durations import Expected
from reconciler.core.estimates import NOTHING
from reconciler.core.events import (
    Event,
    HookEnded,
    Interrupted,
    LeaseAwaited,
    RunEnded,
    RunStarted,
    StepEnded,
    StepStarted,
)
from reconciler.core.machine import BAD, GOOD, Status
from reconciler.core.plan import Op, Step
from reconciler.views.words import count, duration, one_line, shortened

DOING = {
    Op.PULL: "pulling",
    Op.FETCH: "copying model",
    Op.PREFLIGHT: "trying out",
    Op.CREATE: "creating",
    Op.STOP: "stopping",
    Op.UNPROVE: "unproving",
    Op.ROOM: "waiting for free memory",
    Op.START: "starting",
    Op.READY: "waiting for",
    Op.VERIFY: "proving",
    Op.CONFIRM: "confirming",
    Op.REMOVE: "removing",
}

WAITS = frozenset({Op.PULL, Op.FETCH, Op.PREFLIGHT, Op.ROOM, Op.READY, Op.VERIFY, Op.STOP})
"""What may take long says what it waits for as it begins."""


def event_lines(event: Event, expected: Mapping[str, Expected] = NOTHING.steps) -> Iterator[str]:
    """What one event says, in zero or more lines. Progress says nothing here: it is for live displays.

    `expected`: how long steps are expected to take, by their id, as far as it is known.
    """
    if isinstance(event, StepStarted) and event.step.op in WAITS:
        return iter([one_line(f"  ... {step_words(event.step)}{expected_words(expected.get(event.step.id))}")])
    return map(one_line, _lines(event))


def expected_words(found: Expected | None) -> str:
    """ " (expected about 3m20s)"; nothing where nothing is known."""
    return f" (expected about {duration(found.seconds)})" if found is not None and found.seconds >= 1.0 else ""


def _lines(event: Event) -> Iterator[str]:
    if isinstance(event, LeaseAwaited):
        yield f"waiting for the lease of {event.node}: {event.holder.told}"
    elif isinstance(event, RunStarted):
        yield f"run {event.run_id}: plan {event.plan.id}, {count(len(event.plan.steps), 'step')}"
    elif isinstance(event, StepEnded):
        yield from _ended(event)
    elif isinstance(event, HookEnded):
        yield from _hook(event)
    elif isinstance(event, Interrupted):
        waiting = ", ".join(step_words(step) for step in event.waiting)
        yield f"interrupted; was {waiting}" if waiting else "interrupted; nothing was under way"
    elif isinstance(event, RunEnded):
        yield from event.summary.splitlines()


def _hook(event: HookEnded) -> Iterator[str]:
    took = f" ({duration(event.seconds)})" if event.seconds >= 0.5 else ""
    mark, said = "ok " if event.ok else "ERR", event.detail.splitlines()
    yield f"  {mark} hook {event.hook} for {event.placement}{took}{f': {said[-1 if event.ok else 0]}' if said else ''}"
    yield from (f"      | {line}" for line in (said[1:] if not event.ok else ()))


def _ended(event: StepEnded) -> Iterator[str]:
    took = f" ({duration(event.seconds)})" if event.seconds >= 0.5 else ""
    detail = f": {event.detail}" if event.detail else ""
    mark = "ok " if event.status in GOOD else "ERR"
    yield f"  {mark} {step_words(event.step)}{_status(event)}{took}{detail}"
    if event.status in BAD and event.logs:
        yield "      last log line:" if len(event.logs) == 1 else f"      last {len(event.logs)} log lines:"
        yield from (f"      | {line}" for line in event.logs)


def _status(event: StepEnded) -> str:
    """What the mark does not say. A wait that found what it waited for has done nothing, and is plainly ok."""
    if event.status is Status.NOOP:
        return "" if event.step.op is Op.ROOM else " (already so)"
    return f" [{event.status}]" if event.status in BAD else ""


def step_words(step: Step) -> str:
    """ "starting fleet-lane-r0-v1 on node1"."""
    where = f" on {step.node}" if step.node else ""
    return f"{_doing(step)} {step.target.rpartition('@')[0] or step.target}{where}"


def brief_words(step: Step, limit: int) -> str:
    """The same in `limit` characters where it can be: the name shortened first, then what is done left out."""
    words = step_words(step)
    if len(words) <= limit:
        return words
    where = f" on {step.node}" if step.node else ""
    name = (step.target.rpartition("@")[0] or step.target).rpartition("/")[2]
    words = f"{_doing(step)} {name}{where}"
    return words if len(words) <= limit else f"{shortened(name, max(limit - len(where), 6))}{where}"


def _doing(step: Step) -> str:
    """An image that is there under another name is pulled without a byte of it."""
    return "naming" if step.op is Op.PULL and step.estimate_bytes == 0 else DOING[step.op]
