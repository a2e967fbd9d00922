"""A plan as Markdown for a pull request: a summary table first, then what goes dark, then the details, within a budget.

The budget cuts details only: no refusal, no outage and no stop is ever left out before everything else is.
"""

from collections.abc import Iterable, Iterator

from reconciler.core.plan import Kind, Plan
from reconciler.views.markdown import cell
from reconciler.views.plan_text import Boots, plan_text
from reconciler.views.words import dark_time

BUDGET = 60_000
"""Characters. Forges refuse comments above 65,535."""


def plan_markdown(plan: Plan, boots: Boots) -> str:
    """The plan as one comment of at most `BUDGET` characters."""
    head = "\n".join(_head(plan, boots)) + "\n"
    details = plan_text(plan, boots).replace("```", "'''")
    frame = "\n<details><summary>Details</summary>\n\n```text\n{}```\n\n</details>\n"
    room = BUDGET - len(head) - len(frame)
    if len(details) > room:
        details = details[: max(room - 60, 0)] + "\n... cut; `fleet plan` shows all of it\n"
    return (head + frame.format(details))[:BUDGET]


def _head(plan: Plan, boots: Boots) -> Iterator[str]:
    yield f"### fleet plan: {plan.fleet}"
    yield ""
    yield f"plan `{plan.id}`{f' for commit `{plan.commit[:12]}`' if plan.commit else ''}"
    yield ""
    for refusal in plan.refusals:
        yield f"- **refused** `{refusal.gang}`: {cell(refusal.summary)}"
    for state in plan.unknown:
        yield f"- **unreachable** `{state.node}`: {cell(state.reason)}"
    for outage in plan.outages:
        dark = dark_time(boots.get(outage.gang, ()), outage.stop_s, outage.budget_s)
        yield f"- **dark** {_codes(outage.nodes)} for {dark}: stops {_codes(outage.stops)}"
    yield ""
    if not plan.changes:
        yield "No changes."
        return
    yield "| what | lane | nodes | why |"
    yield "|---|---|---|---|"
    order = sorted(plan.changes, key=lambda item: (item.kind not in {Kind.STOP, Kind.CLEAN}, item.gang))
    for change in order:
        yield f"| {change.kind} | `{change.gang}` | {', '.join(change.nodes)} | {cell(change.reason)} |"


def _codes(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
