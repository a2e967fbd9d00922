"""The policies that come with fleet, made from what the spec says of them."""

from collections.abc import Callable, Iterator, Sequence

from reconciler.core.desired import Gang
from reconciler.core.gitops.guards import protected as named
from reconciler.core.gitops.guards import stopped
from reconciler.core.objection import Level, Objection
from reconciler.core.plan import Op, Plan
from reconciler.core.policies.policy import Policy, PolicyContext

PINNED, PROTECTED, BUDGET = "pinned", "protected", "budget"
"""Their ids."""

IDS = (PINNED, PROTECTED, BUDGET)


def pinned(lanes: Sequence[str], level: Level) -> Policy:
    """Images come from a registry, by digest: not from a build that only one node has."""

    def judge(context: PolicyContext) -> Iterator[Objection]:
        for gang in _booted(context.plan):
            image = gang.ranks[0].container.image
            if named([gang.address], lanes) and image.kind != "digest":
                hint = "`fleet pin LANE --from NODE --publish --write` gives the build a digest"
                yield Objection(f"its image is a local build ({image.short})", gang.address, hint)

    return Policy(PINNED, "Does every lane that boots run an image by digest?", judge, level)


def budget(stops: int, level: Level) -> Policy:
    """At most so many lanes go dark in one run."""

    def judge(context: PolicyContext) -> Iterator[Objection]:
        found = _stopped(context.plan)
        if len(found) > stops:
            told = f"it stops {len(found)} lanes, and {stops} may stop in one run: {', '.join(found)}"
            yield Objection(told, hint="go step by step: `fleet apply --lane NAME`")

    return Policy(BUDGET, "Does it stop few enough lanes?", judge, level)


def protected(lanes: Sequence[str], closed: Callable[[float], str], level: Level) -> Policy:
    """No lane of these stops now. `closed`: why not at a moment (seconds since 1970); empty when it may."""

    def judge(context: PolicyContext) -> Iterator[Objection]:
        found = named(_stopped(context.plan), lanes)
        why = closed(context.now_s) if found else ""
        for gang in found if why else ():
            yield Objection(f"it is protected and would stop: {why}", gang, "wait for its window")

    return Policy(PROTECTED, "Does no protected lane stop outside of its windows?", judge, level)


def _stopped(plan: Plan) -> tuple[str, ...]:
    return stopped(plan, {change.gang for change in plan.changes})


def _booted(plan: Plan) -> Iterator[Gang]:
    starts = {step.gang for step in plan.steps if step.op is Op.CREATE}
    return (gang for gang in plan.gangs if gang.address in starts)
