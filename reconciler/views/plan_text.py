"""A plan as text for a terminal: what is refused, what is deleted and what goes dark come first."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from reconciler.core.diff import FieldChange
from reconciler.core.estimates import NOTHING, Estimates
from reconciler.core.plan import Change, Foreign, Kind, Op, Outage, Plan, Step, Withheld
from reconciler.core.unknown import unreachable
from reconciler.core.withhold import stands_in_the_way
from reconciler.views.transfer_text import Told, fetch_lines, short, transfer_lines
from reconciler.views.words import count, dark_time, duration, expected_dark_time, one_line, shortened

SIGNS = {
    Kind.BOOT: "+",
    Kind.REPLACE: "~",
    Kind.REPAIR: "~",
    Kind.PROVE: "?",
    Kind.STOP: "-",
    Kind.CLEAN: "-",
    Kind.SYNC: "<",
}
DELETES = frozenset({Kind.STOP, Kind.CLEAN})
FIELDS_SHOWN = 12
"""More field changes than this are counted: a plan so long that nobody reads it hides its deletes."""
NAMES_SHOWN = 12
NAME_WIDTH = 48
"""Reasons stand in a column up to this width of lane names."""
NOUNS = {Op.PULL: "pull", Op.PREFLIGHT: "preflight", Op.STOP: "stop", Op.ROOM: "free memory", Op.VERIFY: "boot"}
"""Steps of which it is told how long they take."""
LINE_WIDTH = 100
"""What is told of an image goes on in the next line beyond this."""
VALUE_SHOWN = 160
"""Characters of one side of a field change."""

Boots = Mapping[str, Sequence[float]] | None
"""Recorded boot times in seconds by gang; None where the record was not looked into."""


def plan_text(plan: Plan, boots: Boots, observed_s: float | None = None, estimates: Estimates = NOTHING) -> str:
    """The whole plan. `observed_s`: how long looking took, in seconds."""
    return "".join(f"{one_line(line)}\n" for line in _Text(plan, boots, observed_s, estimates).lines())


def dark_words(outage: Outage, boots: Boots, estimates: Estimates) -> str:
    """How long nothing answers: by the lane's own last boots, else by those of its image on such nodes elsewhere."""
    dark = estimates.dark_of(outage.gang)
    if dark is not None and dark.boot is not None:
        return expected_dark_time(dark, outage.stop_s, outage.budget_s)
    return dark_time(None if boots is None else boots.get(outage.gang, ()), outage.stop_s, outage.budget_s)


def total(plan: Plan) -> str:
    """What would be done, in one line."""
    counts = Counter(change.kind for change in plan.changes)
    told = ", ".join(f"{counts[kind]} {kind}" for kind in Kind if counts[kind])
    if refusals := stands_in_the_way(plan):
        lanes = {item.gang for item in refusals if item.gang}
        return f"Plan: refused for {count(len(lanes), 'lane')}." if lanes else "Plan: refused."
    if told:
        away = f"; withheld: {count(len(plan.withheld), 'lane')}" if plan.withheld else ""
        return f"Plan: {told}{away}."
    if plan.unknown and not plan.observed:
        return "No node answered, so nothing is known of what would change."
    if unreachable(plan.unknown) or not plan.is_settled:
        return "No changes on the nodes that answer."
    return "No changes."


@dataclass(frozen=True)
class _Text:
    plan: Plan
    boots: Boots
    observed_s: float | None
    estimates: Estimates

    def lines(self) -> Iterator[str]:
        plan = self.plan
        yield _headline(plan, self.observed_s)
        yield from _unknown(plan)
        yield from _refusals(plan)
        yield from _objections(plan)
        yield from _withheld(plan.withheld)
        dark = {item.gang for item in plan.outages} | {name for item in plan.outages for name in item.stops}
        alone = [change for change in plan.changes if change.gang not in dark]
        yield from self._block(change for change in alone if change.kind in DELETES)
        shown: set[str] = set()
        for outage in plan.outages:
            yield ""
            yield from self._outage(outage, shown)
        yield from self._block(change for change in alone if change.kind not in DELETES)
        yield ""
        yield from _remarks(plan)
        yield total(plan)

    def _block(self, changes: Iterator[Change]) -> Iterator[str]:
        for number, change in enumerate(sorted(changes, key=lambda item: item.gang)):
            if number == 0:
                yield ""
            yield from self._change(change)

    def _outage(self, outage: Outage, shown: set[str]) -> Iterator[str]:
        verb = "goes" if len(outage.nodes) == 1 else "go"
        dark = dark_words(outage, self.boots, self.estimates)
        later = " (withheld for now)" if outage.gang in self._away else ""
        yield f"{' '.join(outage.nodes)} {verb} dark for {dark}{later}"
        for name in (*(name for name in outage.stops if name != outage.gang), outage.gang):
            change = self._by_gang.get(name)
            if name in shown:
                yield f"  - stop    {name:<{self._width}}  as above"
            elif change is not None:
                shown.add(name)
                yield from self._change(change)

    @cached_property
    def _by_gang(self) -> Mapping[str, Change]:
        return {change.gang: change for change in self.plan.changes}

    @cached_property
    def _away(self) -> frozenset[str]:
        return frozenset(item.gang for item in self.plan.withheld)

    @cached_property
    def _width(self) -> int:
        return min(max(len(change.gang) for change in self.plan.changes), NAME_WIDTH)

    @cached_property
    def _steps(self) -> Mapping[tuple[str, Op], list[Step]]:
        found: dict[tuple[str, Op], list[Step]] = {}
        for step in self.plan.steps:
            found.setdefault((step.gang, step.op), []).append(step)
        return found

    def _change(self, change: Change) -> Iterator[str]:
        later = " (withheld)" if change.gang in self._away else ""
        yield f"  {SIGNS[change.kind]} {change.kind:<8}{change.gang:<{self._width}}  {change.reason}{later}"
        yield f"      nodes   {' '.join(change.nodes)}"
        coming = [item for item in self.plan.transfers if item.gang == change.gang]
        for told in transfer_lines(coming):
            yield from _image(told)
        yield from fetch_lines(self._steps.get((change.gang, Op.FETCH), []))
        yield from self._expected(change)
        yield from (f"      note    {note}" for note in change.notes)
        if change.kind in {Kind.CLEAN, Kind.PROVE}:
            yield from self._removed(change)
        for field in change.fields[:FIELDS_SHOWN]:
            yield _field(field)
        if len(change.fields) > FIELDS_SHOWN:
            yield f"      and {len(change.fields) - FIELDS_SHOWN} more fields; `fleet plan --json` shows all"

    def _expected(self, change: Change) -> Iterator[str]:
        """What each kind of step takes where something is recorded of any; what is not known is said to be unknown."""
        parts = []
        for op, noun in NOUNS.items():
            steps = self._steps.get((change.gang, op), [])
            known = [found for step in steps if (found := self.estimates.steps.get(step.id)) is not None]
            if steps and not (op is Op.PULL and not known):  # what a pull takes is told with its bytes
                took = duration(max(item.seconds for item in known)) if known else "unknown"
                parts.append(f"{noun} {took}")
        if any(not part.endswith("unknown") for part in parts):
            yield f"      expect  {', '.join(parts)}"

    def _removed(self, change: Change) -> Iterator[str]:
        """The containers that go for good, and which of them run."""
        stopped = {step.container_id for step in self._steps.get((change.gang, Op.STOP), [])}
        gone = self._steps.get((change.gang, Op.REMOVE), [])
        for step in gone[:NAMES_SHOWN]:
            runs = ", which runs: it is stopped first" if step.container_id in stopped else ""
            yield f"      remove  {step.target} on {step.node}{runs}"
        if len(gone) > NAMES_SHOWN:
            yield f"      and {len(gone) - NAMES_SHOWN} more containers; `fleet plan --json` shows all"


def _image(told: Told) -> Iterator[str]:
    """The figures on a line of their own where both together are long."""
    line = f"      image   {told}"
    if len(line) <= LINE_WIDTH:
        yield line
        return
    yield f"      image   {told.what}{':' if told.figures else ''}"
    if told.figures:
        yield f"              {told.figures}"


def _headline(plan: Plan, observed_s: float | None) -> str:
    parts = [f"fleet {plan.fleet}"]
    if plan.commit:
        parts.append(f"commit {plan.commit[:12]}")
    seen = f"{count(len(plan.observed), 'node')} observed"
    if observed_s is not None:
        seen += f" in {observed_s:.1f} s"
    silent = unreachable(plan.unknown)
    if silent:
        seen += f", {len(silent)} unreachable"
    if len(silent) < len(plan.unknown):
        seen += f", {len(plan.unknown) - len(silent)} powered off"
    parts.append(seen)
    return " · ".join(parts)


def _unknown(plan: Plan) -> Iterator[str]:
    for state in plan.unknown:
        yield f"  {'-' if state.is_declared else '!'} {state.node}: {state.reason}"
        yield from (f"      {line}" for line in state.hint.splitlines())


def _refusals(plan: Plan) -> Iterator[str]:
    if not plan.refusals:
        return
    yield ""
    stands = stands_in_the_way(plan)
    yield "refused: nothing will be applied while this stands" if stands else "refused, and withheld: others go on"
    for refusal in plan.refusals:
        yield f"  x {f'{refusal.gang}: ' if refusal.gang else ''}{refusal.summary}"
        yield from (f"      {line}" for line in refusal.hint.splitlines())


def _objections(plan: Plan) -> Iterator[str]:
    """What policies say: mandatory objections first, as they are in the plan."""
    if not plan.objections:
        return
    yield ""
    yield "policies: nothing will be applied while a mandatory one objects" if plan.forbidden else "policies advise"
    for item in plan.objections:
        yield f"  {'x' if item in plan.forbidden else '!'} {item.policy} ({item.level}): {item}"
        yield from (f"      {line}" for line in item.hint.splitlines())


def _withheld(found: Sequence[Withheld]) -> Iterator[str]:
    """What is shown below all the same, and is not carried out now."""
    if not found:
        return
    yield ""
    yield "withheld: shown below, and `fleet apply` leaves it alone for now"
    for item in found:
        yield f"  # {item.gang}: {item.why}"
    yield from (f"      {hint}" for hint in dict.fromkeys(item.hint for item in found))


def _field(field: FieldChange) -> str:
    before, after = field.before or "not set", field.after or "not set"
    if field.field == "image":
        before, after = short(before), short(after)
    return f"      {field.field}: {shortened(before, VALUE_SHOWN)} -> {shortened(after, VALUE_SHOWN)}"


def _remarks(plan: Plan) -> Iterator[str]:
    for item in plan.deferred:
        yield f"deferred: {item.gang}: {item.reason}"
    for told in dict.fromkeys(f"{item.evidence} ({item.check})" for item in plan.notices):
        yield f"warning: {told}"
    for passed in plan.silenced:
        until, reason = passed.silence.until, passed.silence.reason
        yield f"silenced until {until}: {passed.finding.evidence} ({passed.finding.check}; {reason})"
    if plan.foreign:
        yield f"foreign: {_names([_foreign(item) for item in plan.foreign])}"
    if plan.unchanged:
        yield f"unchanged: {_names(plan.unchanged)}"


def _names(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMES_SHOWN} more" if len(names) > NAMES_SHOWN else ""
    return ", ".join(names[:NAMES_SHOWN]) + more


def _foreign(item: Foreign) -> str:
    ports = f" (port {', '.join(str(port) for port in item.ports)})" if item.ports else ""
    return f"{item.name} on {item.node}{ports}"
