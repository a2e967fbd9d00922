"""A plan as Markdown for a pull request: what is in the way, then one table with deletes and outages first, then the
rest, then the details.

It fits a forge's limit whatever the size of the plan. Deletes, outages and refusals are never cut while their names fit
(their reasons go before); then everything else in the order of its weight. What does not fit is counted.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from reconciler.core.estimates import NOTHING, Estimates
from reconciler.core.plan import Change, Outage, Plan
from reconciler.views.markdown import cell, code
from reconciler.views.plan_text import DELETES, Boots, dark_words, plan_text, total
from reconciler.views.transfer_text import transfer_lines
from reconciler.views.words import shortened

BUDGET = 60_000
"""Bytes of UTF-8, and so no more characters. Forges refuse comments above 65,535."""
RESERVE = 300
"""Of it, for the sentences that say what does not fit."""
LINE = 600
"""Characters of one value in the table or the list."""
CUT = "... cut; `fleet plan` shows all of it\n"
FRAME = "\n<details><summary>Details</summary>\n\n```text\n{}```\n\n</details>\n"

FRAMEWORK, GRAVE, WEIGHTY, CHANGED, TOLD = range(5)
"""What a line weighs: the frame, a delete, an outage or a refusal, what keeps it, other changes, all else."""


@dataclass(frozen=True)
class _Line:
    """One line; `brief`: its shorter form where it may not go missing."""

    weight: int
    text: str
    brief: str = ""


def _frame(text: str) -> _Line:
    return _Line(FRAMEWORK, text, text)


def plan_markdown(plan: Plan, boots: Boots, estimates: Estimates = NOTHING, budget: int = BUDGET) -> str:
    """The plan as one comment of at most `budget` bytes."""
    head = _fitting(tuple(_lines(plan, boots, estimates)), budget - RESERVE)
    details = plan_text(plan, boots, estimates=estimates).replace("```", "'''")
    room = budget - _size(head) - _size(FRAME)
    if _size(details) > room:
        kept = _cut(details, room - _size(CUT)).rpartition("\n")[0]
        details = f"{kept}\n{CUT}" if kept else ""
    return head + FRAME.format(details) if details else head


def _size(text: str) -> int:
    return len(text.encode("utf-8", "replace"))


def _cut(text: str, size: int) -> str:
    return text.encode("utf-8", "replace")[: max(size, 0)].decode("utf-8", "ignore")


def _fitting(lines: Sequence[_Line], room: int) -> str:
    """The lines in their order: brief forms of what may not go missing first of all, then whole lines by weight."""
    shown: dict[int, str] = {}
    ranked = sorted(range(len(lines)), key=lambda number: lines[number].weight)
    for is_brief in (True, False):
        for number in ranked:
            text = lines[number].brief if is_brief else lines[number].text
            more = _size(text) + 1 - (_size(shown[number]) + 1 if number in shown else 0)
            if more <= room and (text or not is_brief or lines[number].weight == FRAMEWORK):
                shown[number] = text
                room -= more
    text = "".join(f"{shown[number]}\n" for number in sorted(shown))
    return f"{text.rstrip()}\n{_left_out(lines, shown)}"


def _left_out(lines: Sequence[_Line], shown: dict[int, str]) -> str:
    brief = sum(lines[number].text != text for number, text in shown.items())
    left = sum(bool(line.text) for number, line in enumerate(lines) if number not in shown)
    told = f"\n**{brief} lines are without their reasons here; `fleet plan` shows them.**\n" if brief else ""
    return told + (f"\n**{left} more lines do not fit here; `fleet plan` shows them.**\n" if left else "")


def _lines(plan: Plan, boots: Boots, estimates: Estimates) -> Iterator[_Line]:
    """All but the details, in the order in which they stand."""
    commit = f" for commit {code(plan.commit[:12])}" if plan.commit else ""
    for text in (f"### fleet plan: {cell(plan.fleet)}", "", f"{total(plan)} Plan {code(plan.id)}{commit}.", ""):
        yield _frame(text)
    yield from _ended(_in_the_way(plan))
    yield from _ended(_table(plan, boots, estimates))
    yield from _remarks(plan)


def _ended(lines: Iterator[_Line]) -> Iterator[_Line]:
    """A part, and an empty line behind it when there is one."""
    found = tuple(lines)
    yield from found
    if found:
        yield _frame("")


def _in_the_way(plan: Plan) -> Iterator[_Line]:
    for refusal in plan.refusals:
        lane = f" {code(refusal.gang)}" if refusal.gang else ""
        yield _Line(GRAVE, f"- **refused**{lane}: {_told(refusal.summary)}", f"- **refused**{lane}")
    for item in plan.objections:
        lane = f" {code(item.gang)}" if item.gang else ""
        brief = f"- **policy {cell(item.policy)}** ({item.level}){lane}"
        weight = GRAVE if item in plan.forbidden else TOLD
        yield _Line(weight, f"{brief}: {_told(item.summary)}", brief if weight == GRAVE else "")
    for away in plan.withheld:
        yield _Line(WEIGHTY, f"- **withheld** {code(away.gang)}: {_told(away.why)}")


def _remarks(plan: Plan) -> Iterator[_Line]:
    for state in plan.unknown:
        told = "powered off" if state.is_declared else "unreachable"
        yield _Line(TOLD, f"- **{told}** {code(state.node)}: {_told(state.reason)}")
    for item in plan.deferred:
        yield _Line(TOLD, f"- **deferred** {code(item.gang)}: {_told(item.reason)}")
    for passed in plan.silenced:
        let = f"**silenced** until {passed.silence.until} {code(passed.finding.address)}"
        yield _Line(TOLD, f"- {let}: {_told(passed.finding.evidence)}")
    for notice in dict.fromkeys(item.evidence for item in plan.notices):
        yield _Line(TOLD, f"- **warning** {_told(notice)}")
    yield from (_Line(TOLD, f"- image {_told(str(line))}") for line in transfer_lines(plan.transfers))


def _table(plan: Plan, boots: Boots, estimates: Estimates) -> Iterator[_Line]:
    if not plan.changes:
        return
    outages = {outage.gang: outage for outage in plan.outages}
    order = sorted(plan.changes, key=lambda item: (item.kind not in DELETES, item.gang not in outages, item.gang))
    yield _frame("| what | lane | nodes | why | dark |")
    yield _frame("|---|---|---|---|---|")
    for change in order:
        outage = outages.get(change.gang)
        text = _row(change, outage, dark_words(outage, boots, estimates) if outage is not None else "")
        if change.kind in DELETES or outage is not None:
            yield _Line(GRAVE, text, f"| {_what(change)} | {code(change.gang)} |  |  | {'yes' if outage else ''} |")
        else:
            yield _Line(CHANGED, text)


def _row(change: Change, outage: Outage | None, dark: str) -> str:
    nodes = shortened(", ".join(change.nodes), LINE)
    told = f"{_what(change)} | {code(change.gang)} | {cell(nodes)} | {_told(change.reason)}"
    return f"| {told} | {_dark(outage, dark)} |"


def _what(change: Change) -> str:
    return f"**{change.kind}**" if change.kind in DELETES else str(change.kind)


def _dark(outage: Outage | None, dark: str) -> str:
    if outage is None:
        return ""
    others = [name for name in outage.stops if name != outage.gang]
    stops = f"; stops {', '.join(code(name) for name in others)}" if others else ""
    return f"{dark}{stops}"


def _told(text: str) -> str:
    return cell(shortened(text, LINE))
