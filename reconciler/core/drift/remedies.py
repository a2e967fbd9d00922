"""What `fleet apply` would really do about findings: by the plan, which may be refused, withheld or wait."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from reconciler.core.drift.finding import Finding
from reconciler.core.plan import Plan
from reconciler.core.withhold import stands_in_the_way

NOTHING = "nothing"
"""How a remedy begins for which no plan is needed."""


def true_remedies(findings: Iterable[Finding], plan: Callable[[], Plan]) -> tuple[Finding, ...]:
    """The findings, each with what the plan leaves of its remedy. `plan`: with what is withheld; made where a finding
    promises anything."""
    found = tuple(findings)
    if all(item.remedy.startswith(NOTHING) for item in found):
        return found
    made = plan()
    why, others = _of_gangs(made), _for_all(made)
    return tuple(replace(item, remedy=_remedy(item, why, others)) for item in found)


def _remedy(item: Finding, why: Mapping[str, str], others: str) -> str:
    if item.remedy.startswith(NOTHING):
        return item.remedy
    own = why.get(gang_at(item.address))
    return f"{NOTHING}: {own}" if own else f"{NOTHING} {others}; then: {item.remedy}" if others else item.remedy


def gang_at(address: str) -> str:
    """The gang of a finding, whose address may name a rank or a node beside."""
    return "/".join(address.partition("@")[0].split("/")[:2])


def _of_gangs(plan: Plan) -> dict[str, str]:
    """Why nothing is done now about a gang."""
    told = {item.gang: f"it waits: {item.reason}" for item in plan.deferred}
    told |= {item.gang: f"it is refused: {item.summary}" for item in reversed(plan.refusals)}
    return told | {item.gang: _joined(item.why, item.hint) for item in plan.withheld}


def _for_all(plan: Plan) -> str:
    """Why nothing at all is carried out: one gang that is refused stops the whole plan. Empty where none is."""
    refused = stands_in_the_way(plan)
    if not refused:
        return ""
    first = refused[0]
    return f"while {first.gang} is refused" if first.gang else f"while this is refused: {first.summary}"


def _joined(*parts: str) -> str:
    return "; ".join(part for part in parts if part)
