"""Asks policies about a plan, and lays what they say over it."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from reconciler.core.objection import Level, Objection
from reconciler.core.plan import Plan
from reconciler.core.policies.policy import Policy, PolicyContext
from reconciler.core.withhold import going

MEND = "mend the policy, or take it out"


def judged(plan: Plan, policies: Iterable[Policy], now_s: float, levels: Mapping[str, Level]) -> Plan:
    """The plan with what the policies say of it now; mandatory objections first. `levels`: of policies by their id.

    Of a plan with nothing to do nothing is asked.
    """
    part = going(plan)
    context = PolicyContext(replace(part, objections=()), now_s)
    found = [item for policy in policies for item in _of(policy, context, levels)] if part.steps else []
    return replace(plan, objections=tuple(sorted(found, key=lambda item: item.level is not Level.MANDATORY)))


def _of(policy: Policy, context: PolicyContext, levels: Mapping[str, Level]) -> Iterator[Objection]:
    """What one policy says. One that breaks is no pass: nobody knows what it would have forbidden."""
    level = levels.get(policy.id, policy.level)
    try:
        said = list(policy.judge(context))
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever it is, it may be of the user's
        yield _broken(policy, str(error) if isinstance(error, PolicyError) else f"{type(error).__name__}: {error}")
        return
    for item in said:
        if isinstance(item, Objection):
            yield replace(item, policy=policy.id, level=level)
        else:
            yield _broken(policy, f"it yields {type(item).__name__}, not an Objection")


def _broken(policy: Policy, why: str) -> Objection:
    return Objection(f"the policy itself is broken: {why}", "", MEND, policy.id, Level.MANDATORY)


class PolicyError(Exception):
    """Why a policy cannot be asked."""


def fault(policy: str, why: str) -> Policy:
    """A policy that stands for one that could not be loaded: it objects to every plan, and no level softens that."""

    def judge(context: PolicyContext) -> Iterator[Objection]:
        raise PolicyError(why)

    return Policy(policy, "Can the policy be loaded?", judge)
