"""The plan: a frozen value that says what would be done, why, and in which order. It has no way to do anything.

Deterministic: the same inputs give the same bytes. Whether there is anything to do is said in one place, `is_empty`.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Literal

from reconciler.core.canonical import fingerprint, jsonable
from reconciler.core.checks import Finding, Silenced
from reconciler.core.desired import Gang
from reconciler.core.diff import FieldChange
from reconciler.core.objection import Level, Objection
from reconciler.core.observed import Unknown
from reconciler.core.transfer import Transfer
from reconciler.core.unknown import unreachable

SCHEMA = "fleet.plan/1"


class Phase(StrEnum):
    """The phases of replacing a gang, in this order; `rollback` holds the way back when it fails after the cut."""

    STAGE = "stage"
    CUT = "cut"
    BOOT = "boot"
    VERIFY = "verify"
    CONFIRM = "confirm"
    RETIRE = "retire"
    ROLLBACK = "rollback"


class Op(StrEnum):
    """One effect, or one wait, on one address."""

    PULL = "pull"  # bring the image to the node, by digest, verified
    PREFLIGHT = "preflight"  # let the image try out a rank's command line, in a container of its own
    FETCH = "fetch"  # copy a model's files to the node from another one that has them
    CREATE = "create"  # create the rank's container without starting it
    STOP = "stop"  # stop a container, keep it
    UNPROVE = "unprove"  # mark a container as not proved: it is about to boot again
    ROOM = "room"  # wait until the memory a rank needs is really free, of the machine and of its GPUs
    START = "start"  # start a rank
    READY = "ready"  # wait until a rank accepts connections, so that the next wave can boot
    VERIFY = "verify"  # wait until the whole gang is proved healthy
    CONFIRM = "confirm"  # mark a rank as proved
    REMOVE = "remove"  # remove a stopped container that is not wanted any more


BRINGS = frozenset({Op.PULL, Op.FETCH})
"""What moves bytes to a node, and tells how many."""


class Kind(StrEnum):
    """What happens to one gang, as people count it."""

    BOOT = "boot"
    REPLACE = "replace"
    REPAIR = "repair"
    PROVE = "prove"
    STOP = "stop"
    CLEAN = "clean"
    SYNC = "sync"


@dataclass(frozen=True)
class Step:
    """One effect on one address.

    `container_id` and `states` are what must hold on the node right before the effect; None or empty means nothing is
    assumed. `target` is a container's name, an image reference, a model's name or a gang's address. Of a pull:
    `estimate_bytes` are the compressed bytes that this node lacks, and `seed` is the node of the same cluster that
    passes them on (None: each node gets them from the controller). Of a fetch: what has to come, and from where.
    """

    id: str
    gang: str
    phase: Phase
    op: Op
    node: str | None
    target: str
    reason: str
    requires: tuple[str, ...] = ()
    rank: int | None = None
    revision: int | None = None
    container_id: str | None = None
    states: tuple[str, ...] = ()
    grace_s: float | None = None
    estimate_bytes: int | None = None
    seed: str | None = None


@dataclass(frozen=True)
class Change:
    """What happens to one gang and why. `dark`: lanes that stop answering for it, in the order they are named."""

    gang: str
    kind: Kind
    reason: str
    nodes: tuple[str, ...]
    fields: tuple[FieldChange, ...] = ()
    notes: tuple[str, ...] = ()
    dark: tuple[str, ...] = ()
    made_room_for: tuple[str, ...] = ()
    boot_budget_s: float | None = None


@dataclass(frozen=True)
class Refusal:
    """Why the plan must not be applied: what is in the way, where, and what a person can do."""

    code: str
    gang: str
    node: str | None
    summary: str
    hint: str = ""


@dataclass(frozen=True)
class Deferred:
    """A gang of which nothing is decided now, and why."""

    gang: str
    reason: str


@dataclass(frozen=True)
class Withheld:
    """A gang whose steps stay in the plan and are not carried out now, why, and what a person can do."""

    gang: str
    kind: Literal["hold", "quarantine", "stale"]
    why: str
    hint: str = ""


@dataclass(frozen=True)
class Foreign:
    """A running container `fleet` did not make, on a node of this fleet. It is shown and left alone."""

    node: str
    name: str
    ports: tuple[int, ...] = ()
    gpus: int = 0


@dataclass(frozen=True)
class Outage:
    """Nodes on which nothing answers between cut and confirm of `gang`, and the lanes that stop for it.

    `stop_s`: the longest grace of what is stopped; `budget_s`: the boot budget of what takes its place.
    """

    gang: str
    nodes: tuple[str, ...]
    stops: tuple[str, ...]
    stop_s: float
    budget_s: float


@dataclass(frozen=True)
class Rollback:
    """The way back of gangs that succeed or fail together (`gangs`: their addresses, and those of what makes room).

    `steps` stop what was booted and start what ran before; `returns` are the lanes that come back, as their own labels
    tell of them: the ones made by an earlier release tell nothing and are started without being proved.
    """

    gangs: tuple[str, ...]
    steps: tuple[Step, ...]
    returns: tuple[Gang, ...] = ()


@dataclass(frozen=True)
class Plan:
    """The difference between what is wanted and what is there, as ordered steps with reasons.

    `aside`: gangs that this is not about, when it is a part of a bigger plan; they may run beside its own.
    """

    schema: str
    tool: str
    fleet: str
    spec: str
    commit: str | None
    observed: tuple[tuple[str, str], ...]
    unknown: tuple[Unknown, ...]
    refusals: tuple[Refusal, ...]
    deferred: tuple[Deferred, ...]
    outages: tuple[Outage, ...]
    changes: tuple[Change, ...]
    steps: tuple[Step, ...]
    rollbacks: tuple[Rollback, ...]
    gangs: tuple[Gang, ...]
    platforms: tuple[tuple[str, str], ...]
    foreign: tuple[Foreign, ...]
    unchanged: tuple[str, ...]
    transfers: tuple[Transfer, ...] = ()
    withheld: tuple[Withheld, ...] = ()
    aside: tuple[str, ...] = ()
    silenced: tuple[Silenced, ...] = ()
    notices: tuple[Finding, ...] = ()
    objections: tuple[Objection, ...] = ()
    id: str = ""

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to do. Deferred gangs and refusals are not nothing: see `is_settled`."""
        return not self.steps

    @property
    def is_sync(self) -> bool:
        """Whether it only brings images, or models, and touches no lane."""
        return bool(self.changes) and all(change.kind is Kind.SYNC for change in self.changes)

    @property
    def is_model_sync(self) -> bool:
        """Whether it only copies models."""
        return self.is_sync and all(step.op is Op.FETCH for step in self.steps)

    @property
    def forbidden(self) -> tuple[Objection, ...]:
        """The objections for which nothing of it may be carried out."""
        return tuple(item for item in self.objections if item.level is Level.MANDATORY)

    @property
    def is_settled(self) -> bool:
        """Whether the fleet is proved to be what the spec wants: nothing to do, nothing refused or deferred.

        What waits for nodes alone that are declared off is as the spec says.
        """
        waits = self.deferred and not (self.unknown and not unreachable(self.unknown))
        return self.is_empty and not self.refusals and not waits

    def gang(self, address: str) -> Gang:
        """The wanted gang of this address. Raises KeyError for one that the plan does not boot or prove."""
        for gang in self.gangs:
            if gang.address == address:
                return gang
        raise KeyError(address)

    def gang_of(self, step: Step) -> Gang | None:
        """The gang that a step is about: what ran before in a rollback, or else the wanted one; None when not known."""
        ways_back = (item.returns for item in self.rollbacks) if is_return(step) else (self.gangs,)
        return next((gang for gangs in ways_back for gang in gangs if gang.address == step.gang), None)


def is_return(step: Step) -> bool:
    """Whether the step brings back what ran before (as opposed to undoing what was booted)."""
    return step.phase is Phase.ROLLBACK and step.op is not Op.STOP


def is_foreign(step: Step) -> bool:
    """Whether the step stops or brings back a container that fleet did not make, as a placement allows."""
    return step.rank is None and step.revision is None and step.op in {Op.STOP, Op.START}


def sealed(plan: Plan) -> Plan:
    """The plan with its id: a digest of what it saw and would do, so equal plans have equal ids.

    The gangs are left out: the fingerprint of the spec stands for them. So are the figures of transfers (free disk
    wanders, and the steps say what would be done), remarks of checks (they tell such figures, too), and what is
    withheld: that is recorded, and what is recorded changes no plan.
    """
    ways_back = tuple(replace(item, returns=()) for item in plan.rollbacks)
    silent = replace(plan, transfers=(), withheld=(), silenced=(), notices=(), objections=())
    bare = replace(silent, id="", gangs=(), platforms=(), rollbacks=ways_back)
    return replace(plan, id=fingerprint(bare)[:12])


def only_gangs(plan: Plan, wanted: Callable[[str], bool]) -> Plan:
    """The part of a plan that is about some gangs. The caller sees to it that no step needs one of another gang."""
    gangs = {item.gang for item in plan.steps} | {item.gang for item in plan.deferred}
    gangs |= {item.gang for item in plan.refusals} | {gang.address for gang in plan.gangs}
    return sealed(
        replace(
            plan,
            refusals=tuple(item for item in plan.refusals if wanted(item.gang)),
            deferred=tuple(item for item in plan.deferred if wanted(item.gang)),
            outages=tuple(item for item in plan.outages if wanted(item.gang)),
            changes=tuple(item for item in plan.changes if wanted(item.gang)),
            steps=tuple(item for item in plan.steps if wanted(item.gang)),
            rollbacks=tuple(item for item in plan.rollbacks if any(wanted(gang) for gang in item.gangs)),
            gangs=tuple(item for item in plan.gangs if wanted(item.address)),
            transfers=tuple(item for item in plan.transfers if wanted(item.gang)),
            withheld=tuple(item for item in plan.withheld if wanted(item.gang)),
            silenced=tuple(item for item in plan.silenced if wanted(item.finding.address)),
            notices=tuple(item for item in plan.notices if not item.address or wanted(item.address)),
            aside=tuple(sorted({*plan.aside, *(gang for gang in gangs if gang and not wanted(gang))})),
        )
    )


def plan_json(plan: Plan, beside: Mapping[str, object] | None = None) -> str:
    """The plan as JSON text: equal plans, equal bytes. `beside`: keys of what is told with it and is no part of it."""
    told = jsonable(plan)
    return json.dumps({**told, **jsonable(beside)} if beside else told, indent=2, ensure_ascii=False)
