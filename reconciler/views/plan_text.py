"""A plan as text for a terminal: what is refused, what goes dark and what is deleted come first."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from reconciler.core.diff import FieldChange
from reconciler.core.plan import Change, Foreign, Kind, Op, Outage, Plan, Refusal
from reconciler.views.words import count, dark_time, size

SIGNS = {Kind.BOOT: "+", Kind.REPLACE: "~", Kind.REPAIR: "~", Kind.PROVE: "?", Kind.STOP: "-", Kind.CLEAN: "-"}
FIELDS_SHOWN = 12
"""More field changes than this are counted: a plan so long that nobody reads it hides its deletes."""

Boots = Mapping[str, Sequence[float]]


def plan_text(plan: Plan, boots: Boots, observed_s: float | None = None) -> str:
    """The whole plan. `boots`: recorded boot times in seconds by gang; `observed_s`: how long looking took."""
    return "\n".join(_lines(plan, boots, observed_s)) + "\n"


def _lines(plan: Plan, boots: Boots, observed_s: float | None) -> Iterator[str]:
    yield _headline(plan, observed_s)
    yield from _unknown(plan)
    yield from _refusals(plan.refusals)
    shown: set[str] = set()
    for outage in plan.outages:
        yield ""
        yield from _outage(plan, outage, boots, shown)
    rest = [change for change in plan.changes if change.gang not in shown]
    if rest:
        yield ""
    for change in sorted(rest, key=lambda item: (item.kind not in {Kind.STOP, Kind.CLEAN}, item.gang)):
        yield from _change(plan, change)
    yield ""
    yield from _remarks(plan)
    yield _total(plan)


def _headline(plan: Plan, observed_s: float | None) -> str:
    parts = [f"fleet {plan.fleet}"]
    if plan.commit:
        parts.append(f"commit {plan.commit[:12]}")
    seen = f"{count(len(plan.observed), 'node')} observed"
    if observed_s is not None:
        seen += f" in {observed_s:.1f} s"
    if plan.unknown:
        seen += f", {len(plan.unknown)} unreachable"
    parts.append(seen)
    return " · ".join(parts)


def _unknown(plan: Plan) -> Iterator[str]:
    for state in plan.unknown:
        yield f"  ! {state.node}: {state.reason}"
        yield from (f"      {line}" for line in state.hint.splitlines())


def _refusals(refusals: Sequence[Refusal]) -> Iterator[str]:
    if not refusals:
        return
    yield ""
    yield "refused: nothing will be applied while this stands"
    for refusal in refusals:
        yield f"  x {refusal.gang}: {refusal.summary}"
        if refusal.hint:
            yield f"      {refusal.hint}"


def _outage(plan: Plan, outage: Outage, boots: Boots, shown: set[str]) -> Iterator[str]:
    nodes = " ".join(outage.nodes)
    verb = "goes" if len(outage.nodes) == 1 else "go"
    yield f"{nodes} {verb} dark for {dark_time(boots.get(outage.gang, ()), outage.stop_s, outage.budget_s)}"
    for change in plan.changes:
        is_part = change.gang == outage.gang or (change.kind is Kind.STOP and outage.gang in change.made_room_for)
        if is_part and change.gang not in shown:
            shown.add(change.gang)
            yield from _change(plan, change)


def _change(plan: Plan, change: Change) -> Iterator[str]:
    width = max(len(item.gang) for item in plan.changes)
    yield f"  {SIGNS[change.kind]} {change.kind:<8}{change.gang:<{width}}  {change.reason}"
    yield f"      nodes   {' '.join(change.nodes)}"
    yield from _image_lines(plan, change)
    for field in change.fields[:FIELDS_SHOWN]:
        yield from _field(field)
    if len(change.fields) > FIELDS_SHOWN:
        yield f"      and {len(change.fields) - FIELDS_SHOWN} more fields; `fleet plan --json` shows all"


def _image_lines(plan: Plan, change: Change) -> Iterator[str]:
    """One line for each missing image: where, and how much each node has to fetch."""
    pulls = [step for step in plan.steps if step.gang == change.gang and step.op is Op.PULL]
    for image in dict.fromkeys(step.target for step in pulls):
        steps = [step for step in pulls if step.target == image]
        sizes = {step.estimate_bytes for step in steps if step.estimate_bytes is not None}
        each = f": up to {size(max(sizes))} each" if sizes else ""
        yield f"      image   {_short(image)} is missing on {' '.join(step.node or '' for step in steps)}{each}"


def _short(reference: str) -> str:
    name, at, digest = reference.rpartition("@")
    return f"{name}{at}{digest[:19]}"


def _field(field: FieldChange) -> Iterator[str]:
    if field.field == "image":
        yield f"      {field.field}: {_short(field.before or 'not set')} -> {_short(field.after or 'not set')}"
    else:
        yield f"      {field.field}: {field.before or 'not set'} -> {field.after or 'not set'}"


def _remarks(plan: Plan) -> Iterator[str]:
    for item in plan.deferred:
        yield f"deferred: {item.gang}: {item.reason}"
    if plan.foreign:
        yield f"foreign: {', '.join(_foreign(item) for item in plan.foreign)}"
    if plan.unchanged:
        yield f"unchanged: {', '.join(plan.unchanged)}"


def _foreign(item: Foreign) -> str:
    ports = f" (port {', '.join(str(port) for port in item.ports)})" if item.ports else ""
    return f"{item.name} on {item.node}{ports}"


def _total(plan: Plan) -> str:
    counts = Counter(change.kind for change in plan.changes)
    told = ", ".join(f"{counts[kind]} {kind}" for kind in Kind if counts[kind])
    if plan.refusals:
        return f"Plan: refused for {count(len({item.gang for item in plan.refusals}), 'lane')}."
    if told:
        return f"Plan: {told}."
    if plan.deferred or plan.unknown:
        return "No changes on the nodes that answer."
    return "No changes."
