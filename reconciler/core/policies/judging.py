"""Asks policies about a plan, and lays what they say over it."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import islice

from reconciler.core.objection import Level, Objection
from reconciler.core.plan import Plan
from reconciler.core.policies.policy import Policy, PolicyContext
from reconciler.core.withhold import going

MOST = 10_000
"""Objections of one policy: one that yields without end is broken."""

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
    try:
        said = _all(policy.judge(context))
        level = _level(levels.get(policy.id, policy.level))
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever it is, it may be of the user's
        yield _broken(policy, words(error))
        return
    yield from (_checked(policy, level, item) for item in said)


def _all(said: Iterable[object]) -> list[object]:
    found = list(islice(said, MOST + 1))
    if len(found) > MOST:
        raise PolicyError(f"it yields more than {MOST} objections")
    return found


def _level(value: object) -> Level:
    """One that is written as a text weighs what it says; one that is none would let everything pass."""
    try:
        return Level(value)  # type: ignore[arg-type] # that is what is asked
    except ValueError:
        raise PolicyError(f"its level is {value!r}, not mandatory or advisory") from None


def _checked(policy: Policy, level: Level, item: object) -> Objection:
    """What it yields, of texts that can be shown and written down."""
    if not isinstance(item, Objection):
        return _broken(policy, f"it yields {type(item).__name__}, not an Objection")
    texts = (item.summary, item.gang, item.hint)
    for name, text in zip(("summary", "gang", "hint"), texts, strict=True):
        if not isinstance(text, str):
            return _broken(policy, f"it yields an Objection whose {name} is {type(text).__name__}, not a text")
    summary, gang, hint = map(_writable, texts)
    return Objection(summary, gang, hint, policy.id, level)


def _writable(text: str) -> str:
    return text.encode(errors="backslashreplace").decode()


def words(error: BaseException) -> str:
    """What went wrong in code of somebody else's, whose errors may be broken, too."""
    try:
        return _writable(str(error) if isinstance(error, PolicyError) else f"{type(error).__name__}: {error}")
    except Exception:  # noqa: BLE001 - see above
        return type(error).__name__


def _broken(policy: Policy, why: str) -> Objection:
    return Objection(f"the policy itself is broken: {why}", "", MEND, policy.id, Level.MANDATORY)


class PolicyError(Exception):
    """Why a policy cannot be asked."""


def fault(policy: str, why: str) -> Policy:
    """A policy that stands for one that could not be loaded: it objects to every plan, and no level softens that."""

    def judge(context: PolicyContext) -> Iterator[Objection]:
        raise PolicyError(why)

    return Policy(policy, "Can the policy be loaded?", judge)
