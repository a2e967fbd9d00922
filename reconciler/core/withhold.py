"""What of a plan is not carried out now: what a person holds, and what failed before and is not tried again.

Always whole groups (`core/groups.py`). The steps stay in the plan: what is recorded changes no plan, it only keeps some
of it from being done. Times are texts here, made by who reads a clock.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

from reconciler.core.groups import Group, groups
from reconciler.core.plan import Op, Plan, Withheld, only_gangs

HoldKind = Literal["lane", "cluster", "node"]


@dataclass(frozen=True)
class Held:
    """A person's "hands off" of a lane, a cluster or a node. `until` is empty when it ends by being released only."""

    id: str
    kind: HoldKind
    name: str
    owner: str
    reason: str
    until: str = ""

    def __str__(self) -> str:
        until = f" until {self.until}" if self.until else ""
        return f"{self.kind} {self.name} is held by {self.owner}{until}{f': {self.reason}' if self.reason else ''}"

    def is_on(self, gang: str, nodes: Iterable[str]) -> bool:
        """Whether it keeps hands off a gang with steps on these nodes."""
        cluster, _, lane = gang.partition("/")
        return self.name in {"lane": (lane,), "cluster": (cluster,), "node": tuple(nodes)}[self.kind]


@dataclass(frozen=True)
class Failed:
    """A version of a gang that failed: its fingerprint, why, and when."""

    gang: str
    fingerprint: str
    cause: str
    run_id: str
    at: str


def withhold(plan: Plan, holds: Iterable[Held], quarantined: Iterable[Failed], *, retry: bool = False) -> Plan:
    """The plan with what of it is withheld. With `retry`, what failed before is tried again."""
    holds = tuple(holds)
    failed = {} if retry else {(item.gang, item.fingerprint): item for item in quarantined}
    return replace(
        plan, withheld=tuple(item for group in groups(plan) for item in _withheld(plan, group, holds, failed))
    )


def going(plan: Plan) -> Plan:
    """The part of a plan that is to be carried out now."""
    away = {item.gang for item in plan.withheld}
    return only_gangs(plan, lambda gang: gang not in away) if away else plan


def _withheld(
    plan: Plan, group: Group, holds: tuple[Held, ...], failed: dict[tuple[str, str], Failed]
) -> Iterator[Withheld]:
    """Each gang of the group for its own cause, and where it has none, for that of the first that has."""
    gangs = sorted(group.gangs)
    own = {gang: cause for gang in gangs if (cause := _cause(plan, gang, holds, failed))}
    if own:
        first = own[min(own)]
        others = replace(first, why=f"its steps and those of {first.gang} need each other; {first.why}")
        yield from (own.get(gang) or replace(others, gang=gang) for gang in gangs)


def _cause(plan: Plan, gang: str, holds: tuple[Held, ...], failed: dict[tuple[str, str], Failed]) -> Withheld | None:
    nodes = {step.node for step in plan.steps if step.gang == gang and step.node}
    hold = next((item for item in holds if item.is_on(gang, nodes)), None)
    if hold is not None:
        return Withheld(gang, "hold", str(hold), f"`fleet release {hold.id}` ends the hold")
    boots = any(step.op is Op.START and step.gang == gang for step in plan.steps)
    known = failed.get((gang, plan.gang(gang).fingerprint)) if boots else None
    if known is None:
        return None
    why = f"this version failed at {known.at} (run {known.run_id}): {known.cause}"
    return Withheld(gang, "quarantine", why, "change the spec, or try it again with `fleet apply --retry`")
