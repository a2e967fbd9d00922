"""What one look at the fleet says of one commit: the plan, and which gangs are as it has them."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from reconciler.core.canonical import fingerprint
from reconciler.core.classify import Situation, classify
from reconciler.core.desired import Desired
from reconciler.core.gitops.memory import Proven, Remembered
from reconciler.core.observed import Observed
from reconciler.core.plan import Kind, Plan
from reconciler.core.status import views

IN_PLACE = frozenset({Situation.IN_SYNC, Situation.LITTERED})
"""The gang is as the commit has it, whatever is left of others."""

DRIFTED = frozenset({Situation.UNPROVED, Situation.ABSENT, Situation.STOPPED, Situation.DRIFTED, Situation.BROKEN})
"""What a gang that was in place can become by itself, or by hand. One that runs as another version, or with other
secrets, did not drift: somebody brought it there, by `fleet rollback` for example."""


@dataclass(frozen=True)
class Planned:
    """A commit held against the fleet as it was seen.

    `plan`: with what is withheld of it. `observation`: digest of all that an attempt depends on. `wanted`: each gang of
    the commit with its fingerprint. `in_place`: those that are there. `drifted`: those that could have been, before.
    """

    plan: Plan
    observation: str
    wanted: tuple[tuple[str, str], ...]
    in_place: frozenset[str]
    drifted: frozenset[str]

    @property
    def is_told(self) -> bool:
        """Whether all of the fleet could be read: else that there is nothing to do says nothing."""
        return not (self.plan.deferred or self.plan.unknown)


def looked(desired: Desired, observed: Observed, plan: Plan) -> Planned:
    """What one look says. `plan`: of the same, with what is withheld of it."""
    found = {view.gang.address: classify(view).situation for view in views(desired, observed)}
    return Planned(
        plan=plan,
        observation=observation_of(plan),
        wanted=tuple(sorted((gang.address, gang.fingerprint) for gang in desired.gangs)),
        in_place=frozenset(gang for gang, situation in found.items() if situation in IN_PLACE),
        drifted=frozenset(gang for gang, situation in found.items() if situation in DRIFTED),
    )


def observation_of(plan: Plan) -> str:
    """A digest of everything on which the outcome of an attempt depends: no clock, no free disk.

    What is held, refused, objected to or not to be reached is part of it: when that changes, it is worth another try.
    """
    withheld = sorted((item.gang, item.kind) for item in plan.withheld)
    refused = sorted((item.code, item.gang, item.node or "") for item in plan.refusals)
    unknown = sorted(item.node for item in plan.unknown)
    objected = sorted((item.policy, item.gang) for item in plan.forbidden)
    steps = [step.id for step in plan.steps]
    return fingerprint([plan.observed, unknown, withheld, refused, objected, steps])[:16]


def learned(remembered: Remembered, commit: str, planned: Planned) -> Remembered:
    """What a look at a commit that was applied teaches: which gangs are in place, which are gone, whether all is."""
    if commit != remembered.applied:
        return remembered
    plan = planned.plan
    fingerprints = dict(planned.wanted)
    proven = {item.gang: item for item in remembered.proven}
    going = {change.gang for change in plan.changes if change.kind is Kind.STOP}
    gone = [gang for gang in proven if gang not in fingerprints and gang not in going]
    for gang in gone:
        del proven[gang]
    proven |= {gang: Proven(gang, fingerprints[gang], commit) for gang in planned.in_place if gang in fingerprints}
    whole = not (plan.refusals or plan.deferred or plan.unknown or going) and planned.in_place >= set(fingerprints)
    good = commit if whole else remembered.good
    return replace(remembered, good=good, proven=tuple(proven[gang] for gang in sorted(proven)))


def lanes_told(gangs: Iterable[str]) -> str:
    """Names of gangs for a sentence."""
    return ", ".join(sorted(gangs))
