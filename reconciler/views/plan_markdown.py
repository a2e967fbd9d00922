"""A plan as Markdown for a pull request: refusals, then one table with deletes and outages first, then the details.

It fits a forge's limit. What does not fit is cut from the end and counted: details first, then harmless changes; a
refusal or a delete is the last thing to go.
"""

from collections.abc import Iterable, Iterator

from reconciler.core.estimates import NOTHING, Estimates
from reconciler.core.plan import Change, Outage, Plan
from reconciler.views.markdown import cell, code
from reconciler.views.plan_text import DELETES, Boots, dark_words, plan_text, total
from reconciler.views.transfer_text import transfer_lines
from reconciler.views.words import shortened

BUDGET = 60_000
"""Characters. Forges refuse comments above 65,535."""
LINE = 600
"""Characters of one value in the table or the list."""
CUT = "... cut; `fleet plan` shows all of it\n"


def plan_markdown(plan: Plan, boots: Boots, estimates: Estimates = NOTHING) -> str:
    """The plan as one comment of at most `BUDGET` characters."""
    head = "".join(_fitting(_head(plan, boots, estimates)))
    details = plan_text(plan, boots, estimates=estimates).replace("```", "'''")
    frame = "\n<details><summary>Details</summary>\n\n```text\n{}```\n\n</details>\n"
    room = BUDGET - len(head) - len(frame)
    if len(details) > room:
        kept = details[: max(room - len(CUT), 0)].rpartition("\n")[0]
        details = f"{kept}\n{CUT}" if kept else ""
    return head + frame.format(details) if details else head


def _fitting(lines: Iterable[str]) -> Iterator[str]:
    """Whole lines while they fit, then how many there were beyond."""
    room, left = BUDGET - 100, 0
    for line in lines:
        room -= len(line) + 1
        if room >= 0:
            yield f"{line}\n"
        else:
            left += 1
    if left:
        yield f"\n**{left} more lines do not fit here; `fleet plan` shows them.**\n"


def _head(plan: Plan, boots: Boots, estimates: Estimates) -> Iterator[str]:
    yield f"### fleet plan: {cell(plan.fleet)}"
    yield ""
    yield f"{total(plan)} Plan {code(plan.id)}{f' for commit {code(plan.commit[:12])}' if plan.commit else ''}."
    yield ""
    for refusal in plan.refusals:
        lane = f" {code(refusal.gang)}" if refusal.gang else ""
        yield f"- **refused**{lane}: {_told(refusal.summary)}"
    for away in plan.withheld:
        yield f"- **withheld** {code(away.gang)}: {_told(away.why)}"
    for state in plan.unknown:
        yield f"- **unreachable** {code(state.node)}: {_told(state.reason)}"
    for item in plan.deferred:
        yield f"- **deferred** {code(item.gang)}: {_told(item.reason)}"
    for passed in plan.silenced:
        let = f"**silenced** until {passed.silence.until} {code(passed.finding.address)}"
        yield f"- {let}: {_told(passed.finding.evidence)}"
    for notice in dict.fromkeys(item.evidence for item in plan.notices):
        yield f"- **warning** {_told(notice)}"
    if plan.refusals or plan.withheld or plan.unknown or plan.deferred or plan.silenced or plan.notices:
        yield ""
    yield from _table(plan, boots, estimates)
    if plan.transfers:
        yield ""
    for line in transfer_lines(plan.transfers):
        yield f"- image {_told(str(line))}"


def _table(plan: Plan, boots: Boots, estimates: Estimates) -> Iterator[str]:
    if not plan.changes:
        return
    outages = {outage.gang: outage for outage in plan.outages}
    order = sorted(plan.changes, key=lambda item: (item.kind not in DELETES, item.gang not in outages, item.gang))
    yield "| what | lane | nodes | why | dark |"
    yield "|---|---|---|---|---|"
    for change in order:
        outage = outages.get(change.gang)
        yield _row(change, outage, dark_words(outage, boots, estimates) if outage is not None else "")


def _row(change: Change, outage: Outage | None, dark: str) -> str:
    what = f"**{change.kind}**" if change.kind in DELETES else str(change.kind)
    nodes = shortened(", ".join(change.nodes), LINE)
    return f"| {what} | {code(change.gang)} | {cell(nodes)} | {_told(change.reason)} | {_dark(outage, dark)} |"


def _dark(outage: Outage | None, dark: str) -> str:
    if outage is None:
        return ""
    others = [name for name in outage.stops if name != outage.gang]
    stops = f"; stops {', '.join(code(name) for name in others)}" if others else ""
    return f"{dark}{stops}"


def _told(text: str) -> str:
    return cell(shortened(text, LINE))
