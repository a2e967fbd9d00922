"""What of a plan is not carried out now: what is stale, what a person holds, what failed and is not tried again.

Always whole groups (`core/groups.py`). The steps stay in the plan: what is recorded changes no plan, it only keeps some
of it from being done. Times are texts here, made by who reads a clock.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from reconciler.core.groups import Group, groups
from reconciler.core.plan import Op, Plan, Refusal, Withheld, only_gangs
from reconciler.core.stale import Stale

HoldKind = Literal["lane", "cluster", "node"]
ALONG = "goes with "


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

    def __str__(self) -> str:
        return f"this version was put aside at {self.at} (run {self.run_id}): {self.cause}"


def withhold(
    plan: Plan,
    holds: Iterable[Held],
    quarantined: Iterable[Failed],
    *,
    retry: bool = False,
    stale: Iterable[Stale] = (),
) -> Plan:
    """The plan with what of it is withheld. With `retry`, what failed before is tried again."""
    failed = () if retry else quarantined
    causes = _Causes(plan, tuple(holds), {(item.gang, item.fingerprint): item for item in failed}, tuple(stale))
    away = tuple(item for group in groups(plan) for item in causes.of_group(group))
    return replace(plan, withheld=(*away, *causes.of_refused({item.gang for item in away})))


def going(plan: Plan) -> Plan:
    """The part of a plan that is to be carried out now; it still says what is withheld."""
    away = {item.gang for item in plan.withheld}
    return replace(only_gangs(plan, lambda gang: gang not in away), withheld=plan.withheld) if away else plan


def withheld_summary(plan: Plan) -> str:
    """What was withheld, for the end of an apply: each cause once, then what to do."""
    causes = {item.why: item for item in plan.withheld if not item.why.startswith(ALONG)}
    told = [f"withheld: {item.gang}: {item.why}" for item in causes.values()]
    return "\n".join([*told, *dict.fromkeys(item.hint for item in causes.values())])


def stands_in_the_way(plan: Plan) -> tuple[Refusal, ...]:
    """The refusals for which nothing of the plan is carried out: all but those of what is withheld anyway."""
    away = {item.gang for item in plan.withheld}
    return tuple(item for item in plan.refusals if item.gang not in away)


def refused_summary(plan: Plan) -> str:
    """Why nothing of the plan is carried out; empty where nothing is in the way."""
    if plan.refusals:
        return f"refused: {plan.refusals[0].summary}"
    told = [f"refused by policy {item.policy}: {item}" for item in plan.forbidden]
    return "\n".join([*told, *dict.fromkeys(item.hint for item in plan.forbidden if item.hint)])


@dataclass(frozen=True)
class _Causes:
    """Everything for which a gang of the plan may be withheld."""

    plan: Plan
    holds: tuple[Held, ...]
    failed: Mapping[tuple[str, str], Failed]
    stale: tuple[Stale, ...]

    def of_group(self, group: Group) -> Iterator[Withheld]:
        """Each gang of the group for its own cause, and where it has none, because of the first that has."""
        gangs = sorted(group.gangs)
        own = {gang: cause for gang in gangs if (cause := self._of(gang))}
        if own:
            first = own[min(own)]
            others = replace(first, why=f"{ALONG}{first.gang}: their steps need each other")
            yield from (own.get(gang) or replace(others, gang=gang) for gang in gangs)

    def of_refused(self, told: Collection[str]) -> Iterator[Withheld]:
        """What is refused has no steps. Where a person holds it, it keeps nothing else from going on."""
        nodes: dict[str, set[str]] = {}
        for item in self.plan.refusals:
            nodes.setdefault(item.gang, set()).update([item.node] if item.node else [])
        for gang in sorted(nodes.keys() - {"", *told}):
            if (found := self._held_on(gang, nodes[gang])) is not None:
                yield found

    def _of(self, gang: str) -> Withheld | None:
        return self._stale(gang) or self._held(gang) or self._quarantined(gang)

    def _stale(self, gang: str) -> Withheld | None:
        found = next((item for item in self.stale if item.gang == gang), None)
        hint = "`fleet plan` shows what is to be done now"
        return Withheld(gang, "stale", f"stale on {found.node}: {found.told}", hint) if found else None

    def _held(self, gang: str) -> Withheld | None:
        return self._held_on(gang, {step.node for step in self.plan.steps if step.gang == gang and step.node})

    def _held_on(self, gang: str, nodes: Collection[str]) -> Withheld | None:
        found = next((item for item in self.holds if item.is_on(gang, nodes)), None)
        return Withheld(gang, "hold", str(found), f"`fleet release {found.id}` ends the hold") if found else None

    def _quarantined(self, gang: str) -> Withheld | None:
        if not any(step.op is Op.START and step.gang == gang for step in self.plan.steps):
            return None
        found = self.failed.get((gang, self.plan.gang(gang).fingerprint))
        if found is None:
            return None
        return Withheld(gang, "quarantine", str(found), "change the spec, or try it again with `fleet apply --retry`")
