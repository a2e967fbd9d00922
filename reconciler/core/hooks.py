"""Hooks: what the spec has the controller call around a change, and what each call is told.

`before_cut` is asked: nothing of a group is stopped before all of its hooks have ended well. The others are told. A
call may come again after the controller was killed in the middle of it: at least once, never promised to be once.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import ClassVar

from reconciler.core.desired import EnvValue, SecretRef
from reconciler.core.gitops.guards import protected as named
from reconciler.core.plan import Op, Phase, Plan, Step, is_foreign


class Point(StrEnum):
    """When a hook is called."""

    BEFORE_CUT = "before_cut"
    AFTER_CONFIRM = "after_confirm"
    ON_FAILURE = "on_failure"


@dataclass(frozen=True)
class Hook:
    """A program (`command`, run in `folder`) or a web hook (`url`). `name`: where the spec has it, "before_cut[0]"."""

    point: Point
    name: str
    lanes: tuple[str, ...]
    timeout_s: float
    command: tuple[str, ...] = ()
    folder: str = ""
    url: EnvValue | None = None
    given: tuple[tuple[str, EnvValue], ...] = ()
    """Variables of the program, or headers of the request."""

    @property
    def references(self) -> tuple[tuple[str, str], ...]:
        """Its secrets: the name each is given under, and the reference."""
        pairs = (*self.given, ("url", self.url))
        return tuple((name, value.secret) for name, value in pairs if isinstance(value, SecretRef))


@dataclass(frozen=True)
class HookCall:
    """One call, with every secret resolved: nothing of it is shown but the name."""

    name: str
    timeout_s: float
    text: str = field(repr=False)
    command: tuple[str, ...] = ()
    folder: str = ""
    url: str = field(default="", repr=False)
    given: Mapping[str, str] = field(default_factory=dict, repr=False)


class HookError(Exception):
    """A hook that did not end well: `why`, and the end of what it `said`."""

    def __init__(self, why: str, said: str = "") -> None:
        super().__init__(f"{why}: {said}" if said else why)
        self.why, self.said = why, said


@dataclass(frozen=True)
class About:
    """What every call is told. `placement`: cluster/lane; `nodes`: where it runs, or is to run."""

    fleet: str
    placement: str
    lane: str
    cluster: str
    nodes: tuple[str, ...]
    plan: str
    commit: str | None
    reason: str


@dataclass(frozen=True)
class BeforeCut:
    """Containers of the placement are about to be stopped."""

    KIND: ClassVar[str] = "hook.before_cut"
    about: About


@dataclass(frozen=True)
class AfterConfirm:
    """The placement was booted and proved."""

    KIND: ClassVar[str] = "hook.after_confirm"
    about: About


@dataclass(frozen=True)
class Fault:
    """A step that ended badly. `cause`: id of an entry of the catalogue of causes, when one is known."""

    step: str
    status: str
    detail: str
    cause: str


@dataclass(frozen=True)
class OnFailure:
    """The placement failed. `is_as_before`: whether what served before serves again, or was never stopped."""

    KIND: ClassVar[str] = "hook.on_failure"
    about: About
    is_as_before: bool
    faults: tuple[Fault, ...]


Due = BeforeCut | AfterConfirm | OnFailure


def wanted(hooks: Iterable[Hook], point: Point, gang: str) -> tuple[Hook, ...]:
    """The hooks that are called for this placement then."""
    return tuple(hook for hook in hooks if hook.point is point and named([gang], hook.lanes))


def about(plan: Plan, gang: str) -> About:
    """What there is to tell of a placement of the plan."""
    cluster, _, lane = gang.rpartition("/")
    change = next((item for item in plan.changes if item.gang == gang), None)
    on_steps = {step.node for step in plan.steps if step.gang == gang and step.node is not None}
    nodes, reason = (change.nodes, change.reason) if change else (tuple(sorted(on_steps)), "")
    return About(plan.fleet, gang, lane, cluster, nodes, plan.id, plan.commit, reason)


def group(plan: Plan, gang: str) -> tuple[str, ...]:
    """The gangs that succeed or fail together with this one, itself included."""
    return next((way.gangs for way in plan.rollbacks if gang in way.gangs), (gang,))


def cut_gangs(plan: Plan, gangs: Iterable[str]) -> tuple[str, ...]:
    """The gangs among these of which containers are stopped in the cut, foreign ones aside."""
    stops = {step.gang for step in plan.steps if is_cut(step) and not is_foreign(step)}
    return tuple(gang for gang in gangs if gang in stops)


def is_cut(step: Step) -> bool:
    """Whether the step stops a container in the cut: what a group's hooks are called before."""
    return step.op is Op.STOP and step.phase is Phase.CUT


def environment(due: Due, run_id: str) -> dict[str, str]:
    """The variables that tell a program what it is called for, beside the JSON on its standard input."""
    return {
        "FLEET_EVENT": due.KIND,
        "FLEET_RUN": run_id,
        "FLEET_NAME": due.about.fleet,
        "FLEET_PLACEMENT": due.about.placement,
        "FLEET_LANE": due.about.lane,
        "FLEET_CLUSTER": due.about.cluster,
        "FLEET_NODES": " ".join(due.about.nodes),
        "FLEET_COMMIT": due.about.commit or "",
    }
