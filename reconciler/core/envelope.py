"""Events as programs outside get them: numbered, with the run, the time and the kind around what happened.

The form is versioned (`SCHEMA`): within a version, kinds and fields are only added. Everything in an event is made for
people to read, so it holds no secret: what engines and nodes say is redacted where it comes in.
"""

import json
from dataclasses import dataclass
from typing import ClassVar, Protocol

from reconciler.core import events, hooks
from reconciler.core.canonical import jsonable
from reconciler.core.events import RunStarted
from reconciler.core.gitops.events import GITOPS_EVENTS
from reconciler.core.plan import Change, Plan, Withheld

SCHEMA = "fleet.event/1"


class Told(Protocol):
    """Any event: a frozen dataclass that names its kind."""

    @property
    def KIND(self) -> str:  # noqa: N802 - a constant of each class
        """Its name outside, such as "step.ended"."""
        ...


@dataclass(frozen=True)
class Envelope:
    """One event of a stream. `sequence` counts from 1 without gaps; `at_s`: seconds since 1970, of the controller.

    `run`: the run it is of, as in `fleet history`; what belongs to no run has an id of its own command.
    """

    schema: str
    run: str
    sequence: int
    at_s: float
    kind: str
    event: object


@dataclass(frozen=True)
class PlanBrief:
    """What an event says of a plan: which, how much, and what happens to each lane. `steps`: how many."""

    id: str
    fleet: str
    spec: str
    commit: str | None
    steps: int
    changes: tuple[Change, ...]
    withheld: tuple[Withheld, ...]


@dataclass(frozen=True)
class RunBegun:
    """A `RunStarted` as it is told outside: the whole plan is for `fleet plan --json`."""

    KIND: ClassVar[str] = RunStarted.KIND
    run_id: str
    plan: PlanBrief


def enveloped(event: Told, run: str, sequence: int, at_s: float) -> Envelope:
    """The event as it goes out."""
    told = RunBegun(event.run_id, brief(event.plan)) if isinstance(event, RunStarted) else event
    return Envelope(SCHEMA, run, sequence, at_s, event.KIND, told)


def line(envelope: Envelope) -> str:
    """The event as one line of JSON, without its line end; every field in place."""
    return json.dumps(jsonable(envelope), ensure_ascii=True, separators=(",", ":"))


def brief(plan: Plan) -> PlanBrief:
    """What is told of a plan."""
    return PlanBrief(plan.id, plan.fleet, plan.spec, plan.commit, len(plan.steps), plan.changes, plan.withheld)


TOLD: tuple[type, ...] = (
    events.LeaseAwaited,
    RunBegun,
    events.StepStarted,
    events.StepProgress,
    events.StepEnded,
    events.HookEnded,
    events.Interrupted,
    events.RunEnded,
    events.HoldPlaced,
    events.HoldReleased,
    events.LeaseBroken,
    events.ImagesCollected,
    events.ImagePinned,
    events.StateImported,
    *GITOPS_EVENTS,
    hooks.BeforeCut,
    hooks.AfterConfirm,
    hooks.OnFailure,
)
"""Every kind of event, in the order of the published schema; those of hooks are told to hooks alone.

What is not here is told to nobody outside.
"""
