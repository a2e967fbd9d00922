"""Short summaries of how an apply ended, with the next command."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from reconciler.core.identity import unproved_name
from reconciler.core.machine import BAD, GOOD, Machine, Status
from reconciler.core.outcome import Exit, is_as_before, is_fault_of_version
from reconciler.core.plan import Change, Kind, Op, Phase, Plan, Step, is_foreign, is_return
from reconciler.core.unknown import unreachable

_PAST = {
    Kind.BOOT: "booted",
    Kind.REPLACE: "replaced",
    Kind.REPAIR: "repaired",
    Kind.PROVE: "proved",
    Kind.STOP: "stopped",
    Kind.CLEAN: "cleaned",
    Kind.SYNC: "brought its image",
}


def apply_summary(machine: Machine, code: Exit, again: str = "") -> str:
    """What became of the fleet, and what to do next. `again`: what alone goes on from an interrupt, if not `resume`."""
    if code is Exit.INTERRUPTED:
        left = machine.with_status(Status.SKIPPED)
        held = sorted({stop.id: stop for gang in _gangs(left) for stop in _stopped_for(machine, gang)}.items())
        stopped = f"; stopped until then: {_kept(machine, [stop for _, stop in held])}" if held else ""
        return f"interrupted with {_steps(left)} not done{stopped}; {again or _onward(machine)} goes on from here"
    if code in {Exit.OK, Exit.UNREACHABLE}:
        silent = unreachable(machine.plan.unknown)
        rest = f"; not reached: {', '.join(item.node for item in silent)}" if silent else ""
        return f"{_done(machine)}{rest}"
    gangs = ", ".join(sorted(_failed(machine)))
    if code is Exit.REFUSED:
        return f"{gangs}: changed since the plan was made; nothing was stopped; run `fleet plan` again"
    if code is Exit.UNCHANGED and machine.plan.is_sync:
        return f"{_not_brought(machine)}\n{_next(machine, ())}"
    if all(step.phase is Phase.RETIRE for step in machine.with_status(*BAD)):
        return f"{gangs}: as wanted, but what is left of before could not be removed\n{_next(machine, ())}"
    fates = [*_untouched(machine), *_rolled_back(machine)]
    fates += [
        f"{gang}: {_fate(machine, gang)}" for gang in sorted(_failed(machine)) if not _is_as_before(machine, gang)
    ]
    kept = [stop for gang in _in_vain(machine) for stop in _stopped_for(machine, gang)]
    return "\n".join([*fates, _next(machine, kept)])


def _is_as_before(machine: Machine, gang: str) -> bool:
    bad = [step for step in machine.with_status(*BAD) if step.gang in machine.group(gang)]
    return all(is_as_before(machine, step) for step in bad if step.phase is not Phase.ROLLBACK)


def _untouched(machine: Machine) -> Iterator[str]:
    """The gangs for which nothing was cut, in one line."""
    gangs = [gang for gang in sorted(_failed(machine)) if _is_as_before(machine, gang) and not machine.way_back(gang)]
    if gangs:
        yield f"{', '.join(gangs)}: failed before anything was stopped; the fleet serves what it served before"


def _rolled_back(machine: Machine) -> Iterator[str]:
    """A line for each group that is back."""
    backs = dict.fromkeys(machine.group(gang) for gang in sorted(_failed(machine)) if machine.is_back(gang))
    for group in backs:
        failed = [gang for gang in group if gang in _failed(machine)]
        hows = sorted({_how(machine, gang) for gang in failed})
        yield f"{', '.join(failed)}: {', '.join(hows)} and was rolled back; {_back(machine, group[0])}"


def _back(machine: Machine, gang: str) -> str:
    """What is there again."""
    returned = [step for step in machine.way_back(gang) if is_return(step)]
    if not returned:
        return "nothing served there before, and what was booted is stopped"
    proved = {step.gang for step in returned if step.op is Op.VERIFY}
    foreign = {f"{step.target} on {step.node}" for step in returned if is_foreign(step)}
    running = {step.gang for step in returned if not is_foreign(step)} - proved
    told = {"serves again": proved, "runs again": running | foreign}
    return "; ".join(f"what ran before {how}: {', '.join(sorted(gangs))}" for how, gangs in told.items() if gangs)


def _how(machine: Machine, gang: str) -> str:
    kind = next((item.kind for item in machine.plan.changes if item.gang == gang), Kind.BOOT)
    return _HOW.get(kind, "its boot failed")


def _fate(machine: Machine, gang: str) -> str:
    """What became of one gang that did not get through: how it ended, and what of before is stopped for it."""
    ended = {step.phase for step in machine.with_status(*BAD) if step.gang == gang}
    kind = next((item.kind for item in machine.plan.changes if item.gang == gang), Kind.BOOT)
    if kind in {Kind.STOP, Kind.CLEAN}:
        return "could not be stopped and removed whole"
    if gang not in _in_vain(machine):
        left = "what is left of before could not be removed" if ended == {Phase.RETIRE} else "is not marked as proved"
        return f"it serves as wanted, but {left}"
    how = _how(machine, gang) if ended & {Phase.BOOT, Phase.VERIFY} else "failed"
    stops = _stopped_for(machine, gang)
    own = [stop for stop in stops if stop.gang == gang]
    others = [stop for stop in stops if stop.gang != gang]
    parts = [how if stops or machine.way_back(gang) else f"{how}; nothing was stopped for it"]
    if own:
        before = "what ran before is stopped and kept" if kind is Kind.REPLACE else "stopped and kept"
        parts.append(f"{before}: {_kept(machine, own)}")
    if others:
        lanes = ", ".join(_gangs(others))
        parts.append(f"stopped to make room for it, and kept: {lanes} ({_kept(machine, others)})")
    return "; ".join([*parts, *_way_back_failed(machine, gang)])


def _way_back_failed(machine: Machine, gang: str) -> Iterator[str]:
    """What of the rollback did not work: what may still run of the new, and what does not serve of the old."""
    bad = [step for step in machine.way_back(gang) if machine.status[step.id] in BAD]
    running = [step for step in bad if not is_return(step)]
    if running:
        yield f"may still run, since it could not be stopped: {_kept(machine, running)}"
    lost = sorted({step.gang for step in bad if is_return(step)})
    if lost:
        yield f"could not be brought back: {', '.join(lost)}"
    again = [step for step in machine.way_back(gang) if step.op is Op.START and machine.status[step.id] in GOOD]
    if again:
        yield f"runs again, not proved: {_kept(machine, again)}"


_HOW = {Kind.REPLACE: "the new version failed", Kind.PROVE: "it was not proved"}

NAMES_SHOWN = 4


def _kept(machine: Machine, stops: Sequence[Step]) -> str:
    """Containers with their nodes, by the names they have now."""
    unproved = {step.container_id for step in machine.with_status(Status.APPLIED) if step.op is Op.UNPROVE}
    names = [
        f"{unproved_name(stop.target) if stop.container_id in unproved else stop.target} on {stop.node}"
        for stop in stops
    ]
    more = f" and {len(names) - NAMES_SHOWN} more" if len(names) > NAMES_SHOWN else ""
    return f"{', '.join(names[:NAMES_SHOWN])}{more}"


def _gangs(steps: Iterable[Step]) -> list[str]:
    return sorted({step.gang for step in steps})


def _in_vain(machine: Machine) -> list[str]:
    """The failed gangs that do not serve as wanted: all but those that were proved, and only the mark is missing."""
    proved = {step.gang for step in machine.with_status(*GOOD) if step.op is Op.VERIFY}
    return sorted(_failed(machine) - proved)


def _failed(machine: Machine) -> set[str]:
    """The gangs in which something ended badly, and those that could not go on because of it."""
    bad = {step.gang for step in machine.with_status(*BAD) if step.phase is not Phase.ROLLBACK}
    skipped = (step for step in machine.with_status(Status.SKIPPED) if step.phase is not Phase.ROLLBACK)
    return bad | {step.gang for step in skipped if step.op not in {Op.STOP, Op.REMOVE}}


def _stopped_for(machine: Machine, gang: str) -> list[Step]:
    """What was stopped for a gang: to make room for it, or to be replaced by it."""
    needed = {
        item
        for step in machine.plan.steps
        if step.gang == gang and step.phase is not Phase.RETIRE
        for item in step.requires
    }
    again = {step.container_id for step in machine.with_status(*GOOD) if is_return(step) and step.op is Op.START}
    stops = [step for step in machine.with_status(Status.APPLIED) if step.op is Op.STOP and step.id in needed]
    return [step for step in stops if step.container_id not in again]


def _next(machine: Machine, stopped: Sequence[Step]) -> str:
    """What a person can do now."""
    silent = sorted({step.node for step in machine.with_status(Status.UNREACHABLE) if step.node})
    if silent:
        return f"when {', '.join(silent)} can be reached again: {_again(machine)} goes on from here"
    changed = any(
        item.gang in _failed(machine) and item.kind in {Kind.BOOT, Kind.REPLACE} for item in machine.plan.changes
    )
    undo = "; to have back what was stopped: undo the change in the spec, then `fleet apply`"
    back = undo if stopped and changed else ""
    if any(is_fault_of_version(step, machine.status[step.id]) for step in machine.with_status(Status.FAILED)):
        return f"change the spec, then {_again(machine)}; to try the same again: `fleet apply --retry`{back}"
    if any(step.op is Op.PREFLIGHT for step in machine.with_status(Status.FAILED)):
        return f"change the spec, or mend what is shown above, then {_again(machine)}{back}"
    return f"mend what is shown above, then {_again(machine)}{back}"


def _again(machine: Machine) -> str:
    return _sync(machine.plan) if machine.plan.is_sync else "`fleet apply`"


def _onward(machine: Machine) -> str:
    """What goes on from an interrupt with no more than the interrupted run was about."""
    return _sync(machine.plan) if machine.plan.is_sync else "`fleet resume`"


def _sync(plan: Plan) -> str:
    return "`fleet models sync`" if plan.is_model_sync else "`fleet images sync`"


def _steps(left: Sequence[Step]) -> str:
    """ "1 step", "3 steps"."""
    return f"{len(left)} step{'s' * (len(left) != 1)}"


def cut_short_summary(machine: Machine, why: str, hint: str) -> str:
    """For a run that had to end because it could not be recorded any more."""
    left = machine.with_status(Status.SKIPPED, Status.RUNNING)
    ended = f"ended with {_steps(left)} not done, since nothing goes on unrecorded: {why}"
    return f"{ended}\n{hint} Then {_again(machine)} goes on from here"


def _done(machine: Machine) -> str:
    """ "2 replaced, 1 stopped"; "1 image brought to 3 nodes", or a model. What came by itself meanwhile counts, too."""
    if not machine.plan.is_sync:
        return _counts(machine.plan.changes)
    done = machine.with_status(*GOOD)
    things, nodes = {step.target for step in done}, {step.node for step in done}
    thing = "model" if machine.plan.is_model_sync else "image"
    told = f"{len(things)} {thing}{'s' * (len(things) != 1)} brought to {len(nodes)} node{'s' * (len(nodes) != 1)}"
    return told if done else "nothing to do"


def _not_brought(machine: Machine) -> str:
    failed = machine.with_status(*BAD)
    things = sorted({f"{step.target.rpartition('@')[0] or step.target} to {step.node}" for step in failed})
    return f"could not be brought: {', '.join(things)}; no lane was touched"


def _counts(changes: Sequence[Change]) -> str:
    counts = Counter(change.kind for change in changes)
    return ", ".join(f"{counts[kind]} {_PAST[kind]}" for kind in Kind if counts[kind]) or "nothing to do"


def unsettled_summary(changes: Sequence[Change]) -> str:
    """Which fields do not settle: the plan after the apply was not empty."""
    told = []
    for change in changes:
        fields = ", ".join(dict.fromkeys(field.field for field in change.fields))
        told.append(f"{change.gang} ({fields or change.reason})")
    return f"applied, but it will not settle: {'; '.join(told)}"


def applied_before(run_id: str) -> str:
    """For a saved plan that another run has taken already."""
    return (
        f"refused: this saved plan was taken by run {run_id}, and a saved plan is applied once\n"
        f"`fleet show {run_id}` tells what became of it; `fleet plan` shows what is to be done now"
    )
