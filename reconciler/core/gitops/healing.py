"""Which lanes are repaired now: those that were in place and are not any more, as the commit that put them there says.

Never an upgrade: a lane goes back to the very version that it was proved to be.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from reconciler.core.gitops import settings as told
from reconciler.core.gitops.decision import Bar, Decision, GiveUp, Heal, Look, Nothing, Seen, Stop, Wait
from reconciler.core.gitops.forward import suspended
from reconciler.core.gitops.guards import protected, stopped
from reconciler.core.gitops.looks import Planned, lanes_told
from reconciler.core.gitops.memory import age_s
from reconciler.core.gitops.settings import pause_s
from reconciler.core.groups import groups


@dataclass(frozen=True)
class Ward:
    """The gangs that one commit put in place, and what a look at the fleet says of them."""

    seen: Seen
    commit: str
    planned: Planned

    @cached_property
    def drifted(self) -> tuple[str, ...]:
        """Those that are not in place any more, by themselves or by hand."""
        wanted = dict(self.planned.wanted)
        return tuple(
            item.gang
            for item in self.seen.remembered.proven
            if item.commit == self.commit
            and wanted.get(item.gang) == item.fingerprint
            and item.gang in self.planned.drifted
        )

    @cached_property
    def quarantined(self) -> dict[str, str]:
        """Those whose very version failed when it booted again: why, by gang."""
        found = (item for item in self.planned.plan.withheld if item.kind == "quarantine")
        return {item.gang: item.why for item in found if item.gang in self.drifted}

    @cached_property
    def groups(self) -> tuple[frozenset[str], ...]:
        """What can be repaired without touching anything else: groups of drifted gangs, nothing of them withheld."""
        away = {item.gang for item in self.planned.plan.withheld}
        left = {gang for gang in self.drifted if not self.seen.remembered.is_given_up(gang)}
        return tuple(item.gangs for item in groups(self.planned.plan) if item.gangs <= left and not item.gangs & away)


def healing(seen: Seen) -> Decision | None:
    """What is to be done about drift; None when there is none, or nobody wants to know."""
    if seen.settings.heal is told.Heal.OFF:
        return None
    if (missing := _to_look_at(seen)) is not None:
        return Look(missing)
    wards = [Ward(seen, commit, planned) for commit in commits(seen) if (planned := seen.plans.get(commit))]
    drifted = tuple(sorted({gang for ward in wards for gang in ward.drifted}))
    if not drifted:
        return None
    if seen.settings.heal is told.Heal.REPORT:
        return Nothing(f"drifted, and not repaired, as `heal: report` says: {lanes_told(drifted)}", drifted)
    found = [decision for ward in wards for decision in _of_ward(ward)]
    first = next((item for kind in (GiveUp, Heal, Wait, Stop) for item in found if isinstance(item, kind)), None)
    return first or Nothing(f"drifted, and left alone: {lanes_told(drifted)}", drifted)


def commits(seen: Seen) -> tuple[str, ...]:
    """Those that put a gang in place, the last applied one first: its look tells which gangs are still wanted."""
    found = dict.fromkeys(item.commit for item in seen.remembered.proven)
    last = seen.remembered.applied
    return (*((last,) if last in found else ()), *(item for item in found if item != last))


def _to_look_at(seen: Seen) -> str | None:
    last = seen.remembered.applied
    wanted = (*((last,) if last is not None and commits(seen) else ()), *commits(seen))
    return next((commit for commit in wanted if commit not in seen.plans), None)


def _of_ward(ward: Ward) -> Iterator[Decision]:
    """Everything there is to say of one commit's gangs; the caller takes what is most urgent."""
    if giving_up := _giving_up(ward):
        yield GiveUp(tuple(sorted(giving_up.items())))
    refused = [item for item in ward.planned.plan.refusals if not item.gang or item.gang in ward.drifted]
    yield from (Stop(Bar.REFUSED, f"no repair: {item.summary}", item.hint) for item in refused)
    if any(not item.gang for item in refused):
        return
    held = next(suspended(ward.seen), None)
    denied = ward.seen.opening.denied
    if held is None and denied is not None:
        held = Wait(denied.why, denied.until_s)
    if held is not None:
        yield held
        return
    yield from _repairs(ward)


def _giving_up(ward: Ward) -> dict[str, str]:
    """Gangs that failed as what they were proved to be, or that drifted too often: why, by gang."""
    seen = ward.seen
    found = {gang: f"it failed when it booted again: {why}" for gang, why in ward.quarantined.items()}
    for gang in ward.drifted:
        count = len(_heals(seen, gang))
        if count >= seen.settings.heal_times:
            hours = seen.settings.heal_within_s / 3600
            found.setdefault(gang, f"it was repaired {count} times within {hours:g} h, and drifted again")
    return {gang: why for gang, why in found.items() if not seen.remembered.is_given_up(gang)}


def _repairs(ward: Ward) -> Iterator[Decision]:
    seen = ward.seen
    ready: list[str] = []
    for gangs in ward.groups:
        until_s = max(_ready_s(seen, gang) for gang in gangs)
        if seen.now_s < until_s:
            yield Wait(f"repaired not long ago, and drifted again: {lanes_told(gangs)}", until_s)
            continue
        objected = [item for item in ward.planned.plan.forbidden if not item.gang or item.gang in gangs]
        if objected:
            told_so = f"no repair of {lanes_told(gangs)}: policy {objected[0].policy} objects: {objected[0]}"
            yield Stop(Bar.POLICY, told_so, objected[0].hint)
            continue
        stops = stopped(ward.planned.plan, {*ready, *gangs})
        barred = protected(stopped(ward.planned.plan, gangs), seen.settings.protected)
        if barred and not seen.opening.is_allowed:
            told_so = f"a repair would stop protected lanes: {lanes_told(barred)}"
            yield Stop(Bar.PROTECTED, told_so, "`fleet apply` by a person does it")
        elif seen.settings.stops is not None and len(stops) > seen.settings.stops:
            if not ready:
                yield Stop(Bar.BUDGET, f"a repair would stop more lanes than the budget allows: {lanes_told(stops)}")
        else:
            ready += gangs
    if ready:
        yield Heal(ward.commit, tuple(sorted(ready)))


def _heals(seen: Seen, gang: str) -> list[float]:
    """When it was repaired within the span that counts."""
    heals = (item.at_s for item in seen.remembered.heals if item.gang == gang)
    return [at_s for at_s in heals if age_s(at_s, seen.now_s) < seen.settings.heal_within_s]


def _ready_s(seen: Seen, gang: str) -> float:
    """From when on it may be repaired again; 0 when it may be now."""
    times = _heals(seen, gang)
    pause = pause_s(seen.settings, len(times))
    return max(times) + pause if times and age_s(max(times), seen.now_s) < pause else 0.0
