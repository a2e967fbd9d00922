"""Whether the newest commit is applied now. An ordered list of rules: the first that has something to say decides."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

from reconciler.core.gitops.decision import Adopt, Apply, Bar, Commit, Decision, Look, Nothing, Seen, Stop, Wait
from reconciler.core.gitops.guards import protected, stopped
from reconciler.core.gitops.looks import Planned, lanes_told
from reconciler.core.gitops.memory import BAD, TRIED, Attempt, Outcome, Suspension, age_s
from reconciler.core.gitops.settings import Heal, Settings, pause_s
from reconciler.core.gitops.windows import Opening
from reconciler.core.groups import groups
from reconciler.core.plan import Plan
from reconciler.core.withhold import stands_in_the_way

DEATHS = 3
"""So often the agent may die over a commit before it lets it be."""

AGAIN = "push a commit that mends it, or have it tried again with `fleet gitops retry`"


@dataclass(frozen=True)
class Case:
    """The newest commit, and what a look at the fleet said of it."""

    seen: Seen
    head: Commit
    planned: Planned

    @property
    def is_first_try(self) -> bool:
        """Whether it was never tried: then all of its plan is carried out, also what drifted meanwhile."""
        return self.seen.remembered.applied != self.head.id

    @cached_property
    def gangs(self) -> tuple[str, ...]:
        """What is to be carried out: whole groups in which something is new, and nothing is withheld."""
        away = {item.gang for item in self.planned.plan.withheld}
        found = (group.gangs for group in groups(self.planned.plan))
        wanted = [gangs for gangs in found if not gangs & away and (self.is_first_try or gangs & self.new)]
        return tuple(sorted(gang for gangs in wanted for gang in gangs))

    @cached_property
    def new(self) -> frozenset[str]:
        """The gangs of the plan that were never brought to where this commit wants them."""
        remembered, wanted = self.seen.remembered, dict(self.planned.wanted)
        proven = {item.gang: item.fingerprint for item in remembered.proven}
        found = set()
        for change in self.planned.plan.changes:
            if change.gang in wanted:
                found |= {change.gang} if proven.get(change.gang) != wanted[change.gang] else set()
            elif remembered.good != self.head.id:
                found.add(change.gang)
        return frozenset(found)

    @cached_property
    def attempts(self) -> tuple[Attempt, ...]:
        """Those of this commit, oldest first."""
        return tuple(item for item in self.seen.remembered.attempts if item.commit == self.head.id)


def forward(seen: Seen) -> Decision:
    """What follows from the newest commit alone."""
    head = seen.head
    if head is None:
        return Wait("nothing was fetched yet")
    barred = next((found for gate in GATES if (found := gate(seen, head))), None)
    if barred is not None:
        return barred
    if head.id not in seen.plans:
        return Look(head.id)
    planned = seen.plans[head.id]
    if planned is None:
        return Wait(f"the files of {head.id[:12]} are not to be had")
    case = Case(seen, head, planned)
    return next(found for rule in RULES for found in rule(case))


def _only_forward(seen: Seen, head: Commit) -> Decision | None:
    applied = seen.remembered.applied
    if applied is None or applied == head.id or head.descends:
        return None
    if head.descends is None:
        return Wait(f"it cannot be told whether {head.id[:12]} comes after {applied[:12]}, which was applied last")
    summary = f"{head.id[:12]} does not come after {applied[:12]}, which was applied last: the branch was rewritten"
    return Stop(Bar.NOT_FORWARD, summary, f"when it is right: `fleet gitops accept {head.id[:12]}`")


def _signed(seen: Seen, head: Commit) -> Decision | None:
    if head.unsigned is None:
        return None
    return Stop(Bar.UNSIGNED, f"{head.id[:12]}: {head.unsigned}", "push a commit that an allowed signer has signed")


def _sound(seen: Seen, head: Commit) -> Decision | None:
    if head.broken is None:
        return None
    return Stop(Bar.BROKEN, f"the spec of {head.id[:12]} cannot be used: {head.broken}", "push a commit that mends it")


def _there_to_read(seen: Seen, head: Commit) -> Decision | None:
    return None if head.missing is None else Wait(f"the files of {head.id[:12]} are not to be had: {head.missing}")


GATES: tuple[Callable[[Seen, Commit], Decision | None], ...] = (_only_forward, _signed, _sound, _there_to_read)
"""What a commit has to pass before the fleet is looked at for it."""


def _empty(case: Case) -> Iterator[Decision]:
    """A commit that places nothing is more often a mistake than a wish."""
    if not case.planned.wanted and not case.seen.settings.allow_empty and case.planned.plan.steps:
        hint = "write `gitops: {allow_empty: true}` into the spec when that is meant, or use `fleet down --all`"
        yield Stop(Bar.EMPTY, f"{case.head.id[:12]} places no lane", hint)


def _refused(case: Case) -> Iterator[Decision]:
    """What is in the way of more than what is withheld anyway: nothing of a plan is carried out then."""
    for item in stands_in_the_way(case.planned.plan)[:1]:
        bar = Bar.EMPTY if item.code == "empty" else Bar.REFUSED
        yield Stop(bar, f"{case.head.id[:12]} is refused: {item.summary}", item.hint)


def _there(case: Case) -> Iterator[Decision]:
    """Nothing to do for it: it is applied, or can be taken as applied."""
    plan = case.planned.plan
    if plan.steps and (case.is_first_try or case.new):
        return
    if case.is_first_try:
        yield Adopt(case.head.id)
    elif not case.planned.is_told:
        yield Wait(f"not to be told: {_untold(case)}")
    else:
        left = lanes_left(case)
        yield Nothing(f"{case.head.id[:12]} is applied{_left_so(case, left) if left else ''}", left)


def _left_so(case: Case, left: tuple[str, ...]) -> str:
    how = "not repaired, as `heal: off` says" if case.seen.settings.heal is Heal.OFF else "left alone"
    return f"; drifted since, and {how}: {lanes_told(left)}"


def _untold(case: Case) -> str:
    plan = case.planned.plan
    deferred = [f"{item.gang}: {item.reason}" for item in plan.deferred]
    return "; ".join(deferred or [f"{item.node}: {item.reason}" for item in plan.unknown])


def lanes_left(case: Case) -> tuple[str, ...]:
    """What the plan would change and was in place before: it drifted, and is left to healing."""
    return tuple(sorted({change.gang for change in case.planned.plan.changes} - case.new))


def _withheld(case: Case) -> Iterator[Decision]:
    """All that is left of it is held, or has failed before."""
    if case.gangs:
        return
    told = case.planned.plan.withheld
    held = [item for item in told if item.kind != "quarantine"]
    why = "; ".join(f"{item.gang}: {item.why}" for item in held or told)
    if held or not told:
        yield Wait(f"withheld: {why}" if held else f"nothing of {case.head.id[:12]} can be done now")
    else:
        yield Stop(Bar.QUARANTINED, f"{case.head.id[:12]} failed: {why}", AGAIN)


def _tried(case: Case) -> Iterator[Decision]:
    """One attempt for a commit and what was seen."""
    last = case.attempts[-1] if case.attempts else None
    if last is not None and last.outcome is Outcome.NEEDS_A_PERSON:
        yield Stop(Bar.NEEDS_A_PERSON, f"{case.head.id[:12]} needs a person: {last.summary}", AGAIN)
    same = [item for item in case.attempts if item.observation == case.planned.observation]
    tried = next((item for item in reversed(same) if item.outcome in TRIED), None)
    if tried is not None:
        told = f": {tried.summary}" if tried.summary else ""
        yield Wait(f"{case.head.id[:12]} was tried, and nothing has changed since ({tried.outcome}){told}")
    if sum(item.outcome is Outcome.BEGUN for item in case.attempts) >= DEATHS:
        yield Stop(Bar.DIED, f"the agent ended {DEATHS} times in the middle of {case.head.id[:12]}", AGAIN)


def _pausing(case: Case) -> Iterator[Decision]:
    """What failed is not tried again at once, though it looks different now."""
    failed = [item for item in case.attempts if item.outcome in BAD]
    pause = pause_s(case.seen.settings, len(failed))
    until_s = failed[-1].at_s + pause if failed else 0.0
    if failed and age_s(failed[-1].at_s, case.seen.now_s) < pause:
        yield Wait(f"{case.head.id[:12]} failed {len(failed)} times: it is tried again later", until_s)


def _suspended(case: Case) -> Iterator[Decision]:
    yield from suspended(case.seen)


def suspended(seen: Seen) -> Iterator[Wait]:
    """A person said to do nothing."""
    if seen.suspended is not None and seen.suspended.holds(seen.now_s):
        yield Wait(str(seen.suspended), seen.suspended.until_s)


def _closed(case: Case) -> Iterator[Decision]:
    closed = case.seen.opening.closed
    if closed is not None:
        yield Wait(closed.why, closed.until_s)


def _objected(case: Case) -> Iterator[Decision]:
    """A policy that is mandatory."""
    for item in case.planned.plan.forbidden:
        if not item.gang or item.gang in case.gangs:
            yield Stop(Bar.POLICY, f"policy {item.policy} objects to {case.head.id[:12]}: {item}", item.hint)


def _protected(case: Case) -> Iterator[Decision]:
    found = protected(stopped(case.planned.plan, case.gangs), case.seen.settings.protected)
    if found and not case.seen.opening.is_allowed:
        hint = "`fleet apply` by a person does it, or a window that allows it"
        yield Stop(Bar.PROTECTED, f"{case.head.id[:12]} would stop protected lanes: {lanes_told(found)}", hint)


def _over_budget(case: Case) -> Iterator[Decision]:
    most, found = case.seen.settings.stops, stopped(case.planned.plan, case.gangs)
    if most is not None and len(found) > most:
        told = f"{len(found)} lane{'s' * (len(found) != 1)}, and the budget is {most}: {lanes_told(found)}"
        hint = "change fewer at once, raise `gitops: {budget: {stops: N}}`, or `fleet apply` by a person"
        yield Stop(Bar.BUDGET, f"{case.head.id[:12]} would stop {told}", hint)


def _go(case: Case) -> Iterator[Decision]:
    yield Apply(case.head.id, case.gangs)


GUARDS: tuple[Callable[[Case], Iterator[Decision]], ...] = (_suspended, _closed, _objected, _protected, _over_budget)
"""What people said to keep what nobody attends from acting."""


def barred(
    plan: Plan, settings: Settings, opening: Opening, suspended: Suspension | None, now_s: float
) -> Wait | Stop | None:
    """Why a plan may not be carried out now (`now_s`: seconds since 1970) with nobody attending; None when it may."""
    seen = Seen(now_s, None, suspended=suspended, opening=opening, settings=settings)
    case = Case(seen, Commit(plan.commit or f"plan {plan.id}"), Planned(plan, "", (), frozenset(), frozenset()))
    found = next((found for rule in GUARDS for found in rule(case)), None)
    return found if isinstance(found, Wait | Stop) else None


RULES: tuple[Callable[[Case], Iterator[Decision]], ...] = (
    _empty,
    _refused,
    _there,
    _withheld,
    _tried,
    _pausing,
    *GUARDS,
    _go,
)
