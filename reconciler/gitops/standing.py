"""How the agent stands: told as lines of a log, as events, as metrics, and in the work folder for `gitops status`.

The same news is told once: an agent that waits for a night says so in one line.
"""

import contextlib
import os
import time
from collections.abc import Callable, Mapping
from typing import Any

from reconciler.core.canonical import jsonable
from reconciler.core.envelope import Told
from reconciler.core.gitops import events
from reconciler.core.gitops.decision import Apply, Bar, Commit, Decision, Heal, Nothing, Stop, Wait
from reconciler.core.gitops.looks import Planned
from reconciler.core.gitops.memory import Remembered, Suspension
from reconciler.core.outcome import Exit
from reconciler.gitops.endpoint import Metrics
from reconciler.gitops.log import Log
from reconciler.gitops.workplace import Workplace

SCHEMA = "fleet.gitops/1"

CUT_OFF = frozenset({"fetch", "files"})
"""What keeps a commit from being looked at."""

FAULTS = frozenset({Bar.BROKEN, Bar.UNSIGNED, Bar.NOT_FORWARD})
"""What is wrong with the commit itself: an error, and no refusal."""


class Standing:
    """What there is to say of the agent. `now`: seconds since 1970."""

    def __init__(
        self,
        workplace: Workplace,
        log: Log,
        tell: Callable[[Told], object],
        metrics: Metrics,
        now: Callable[[], float],
    ) -> None:
        self.now = now
        self._tell = tell
        self.until_s: float | None = None
        self._workplace = workplace
        self._log = log
        self._metrics = metrics
        kept = {"state_at": (workplace.told() or {}).get("state_at")}
        self._status: dict[str, Any] = {"schema": SCHEMA, "pid": os.getpid(), "started_s": now(), **kept}
        self._said: dict[str, str] = {}
        self._exit = Exit.OK
        self._decided = Exit.OK
        self._is_cut_off = False

    def tell(self, event: Told) -> None:
        """Pass on what happens in an apply."""
        self._tell(event)

    def is_new(self, head: str) -> bool:
        """Whether it was not told of this commit yet."""
        return self._status.get("head") != head

    def keeps(self, place: str) -> None:
        """Where the state is recorded, as the spec says: as text it holds no password."""
        self._write(state_at=place)

    def fetched(self) -> None:
        """The remote has answered."""
        self._is_cut_off = False
        self._said.pop("fetch", None)
        self._metrics.fetched.set(self.now())
        self._write(fetched_s=self.now(), fetch_error=None)

    def came(self, head: str, subject: str) -> None:
        """A new commit."""
        self._tell(events.CommitSeen(head, subject))
        self._log.info(f"{head[:12]} is the newest commit: {subject}", commit=head)
        self._write(head=head, subject=subject)

    def failed(self, what: str, summary: str, hint: str) -> None:
        """A fetch, a look or an apply that went wrong outside of the agent."""
        if self._is_news(what, summary):
            self._tell(events.LookFailed(what, summary))
            self._log.warn(f"{summary}\n{hint}" if hint else summary, what=what)
        self._is_cut_off = self._is_cut_off or what in CUT_OFF
        self._decided = Exit.ERROR
        self._write(**{"fetch_error" if what == "fetch" else "error": summary})

    def gave_up(self, why: Mapping[str, str]) -> None:
        """Placements that are left alone from now on."""
        for gang, said in why.items():
            self._tell(events.GaveUp(gang, said))
            self._log.error(f"gave up on {gang}: {said}\na person has to look; then `fleet gitops retry`", gang=gang)

    def decided(
        self,
        head: Commit | None,
        decision: Decision,
        remembered: Remembered,
        suspended: Suspension | None,
        plans: Mapping[str, Planned | None],
    ) -> None:
        """What a turn comes to."""
        commit = head.id if head is not None else None
        self.until_s = decision.until_s if isinstance(decision, Wait) else None
        self._decided = _exit_of(decision, plans.get(commit or ""))
        self._say(commit, decision)
        self._count(decision, remembered, suspended, commit)
        for about in ("look",) if head is not None and head.missing is not None else ("look", "files"):
            self._said.pop(about, None)
        self._write(
            error=None,
            looked_s=self.now(),
            state=state_of(decision),
            why=getattr(decision, "why", "") or getattr(decision, "summary", ""),
            hint=getattr(decision, "hint", ""),
            bar=getattr(decision, "bar", None),
            until_s=self.until_s,
            drifted=list(getattr(decision, "drifted", ())),
            applied=remembered.applied,
            good=remembered.good,
            attempts=jsonable(remembered.attempts[-5:]),
            heals=jsonable(remembered.heals[-10:]),
            gave_up=jsonable([item for item in remembered.gave_up if remembered.is_given_up(item.gang)]),
            suspended=jsonable(suspended),
        )

    def begins(self, event: events.Attempted | events.HealBegun) -> None:
        """An apply or a repair begins."""
        verb = "applying" if isinstance(event, events.Attempted) else "repairing, as of"
        self._tell(event)
        self._metrics.applying.set(1)
        self._log.info(f"{verb} {event.commit[:12]}: {', '.join(event.gangs)}", commit=event.commit)
        self._write(doing={"what": event.KIND, "commit": event.commit, "gangs": list(event.gangs)})

    def superseded(self, event: events.Superseded) -> None:
        """A newer commit takes over."""
        self._tell(event)
        self._log.info(f"{event.by[:12]} takes the place of {event.commit[:12]}: interrupting", commit=event.by)

    def unfit(self, commit: str, why: str) -> None:
        """A newer commit that does not take over: said once, it is asked about at every look."""
        if self._is_news("unfit", f"{commit} {why}"):
            self._log.warn(f"{commit[:12]} came meanwhile, and interrupts nothing: {why}", commit=commit)

    def tried(self, event: events.AttemptEnded) -> None:
        """An apply is over."""
        self._tell(event)
        say = self._log.info if event.outcome in {"applied", "interrupted"} else self._log.error
        say(f"{event.commit[:12]} {event.outcome}: {event.summary}", commit=event.commit, run=event.run)

    def healed(self, event: events.HealEnded) -> None:
        """A repair is over."""
        self._tell(event)
        say = self._log.info if event.ok else self._log.error
        say(f"repair of {', '.join(event.gangs)}: {event.summary}", commit=event.commit, run=event.run)

    def ended(self, code: Exit) -> None:
        """What a turn carried out ended with this code."""
        self._exit = code

    def rested(self) -> None:
        """Nothing is carried out any more, however that ended."""
        self._metrics.applying.set(0)
        self._said.pop("watch", None)
        self._write(doing=None)

    def rests(self, until_s: float) -> None:
        """The next look is at `until_s`."""
        self._write(next_look_s=until_s)

    def exit(self, *, once: bool) -> Exit:
        """The exit code of the agent: one that served its time is done, unless what it did was interrupted."""
        if self._exit is Exit.INTERRUPTED:
            return Exit.INTERRUPTED
        if not once:
            return Exit.OK
        if self._exit not in {Exit.OK, Exit.REFUSED}:
            return self._exit
        return Exit.ERROR if self._is_cut_off else self._decided

    @property
    def status(self) -> dict[str, Any]:
        """All of it, as it is in the work folder."""
        return dict(self._status)

    def _say(self, commit: str | None, decision: Decision) -> None:
        told = f"{commit} {decision}"
        if not self._is_news("decision", told):
            return
        if isinstance(decision, Stop):
            self._tell(events.Blocked(commit or "", decision.bar, decision.summary, decision.hint))
            hint = f"\n{decision.hint}" if decision.hint else ""
            self._log.error(f"{decision.summary}{hint}", commit=commit, bar=str(decision.bar))
        elif isinstance(decision, Wait):
            self._tell(events.Waiting(commit, decision.why, decision.until_s))
            until = (
                time.strftime(" (until %Y-%m-%d %H:%M)", time.localtime(decision.until_s)) if decision.until_s else ""
            )
            self._log.info(f"waiting: {decision.why}{until}", commit=commit)
        elif isinstance(decision, Nothing):
            say = self._log.warn if decision.drifted else self._log.info
            say(decision.why, commit=commit, drifted=list(decision.drifted))

    def _count(
        self, decision: Decision, remembered: Remembered, suspended: Suspension | None, commit: str | None
    ) -> None:
        metrics = self._metrics
        metrics.looked.set(self.now())
        metrics.blocked.set(isinstance(decision, Stop))
        metrics.waiting.set(isinstance(decision, Wait))
        metrics.drifted.set(len(decision.drifted) if isinstance(decision, Nothing) else 0)
        metrics.suspended.set(suspended is not None)
        metrics.given_up.set(sum(remembered.is_given_up(item.gang) for item in remembered.gave_up))
        metrics.commit.clear()
        for role, which in (("newest", commit), ("applied", remembered.applied), ("good", remembered.good)):
            if which is not None:
                metrics.commit.labels(role, which).set(1)

    def _is_news(self, about: str, told: str) -> bool:
        is_news = self._said.get(about) != told
        self._said[about] = told
        return is_news

    def _write(self, **facts: object) -> None:
        """A full disk does not stop the agent; what it did is in the recorded state."""
        self._status |= facts
        with contextlib.suppress(OSError):
            self._workplace.tell(self._status)


STATES: dict[type, str] = {Stop: "blocked", Wait: "waiting", Apply: "applying", Heal: "healing", Nothing: "in sync"}


def state_of(decision: Decision) -> str:
    """How it stands, in a word or two."""
    if isinstance(decision, Nothing) and decision.drifted:
        return "drifted"
    return STATES.get(type(decision), "looking")


def _exit_of(decision: Decision, planned: Planned | None) -> Exit:
    """The exit code of an agent that looked once and had nothing to carry out."""
    if isinstance(decision, Stop):
        return Exit.ERROR if decision.bar in FAULTS else Exit.REFUSED
    if isinstance(decision, Wait):
        return Exit.UNREACHABLE if planned is not None and planned.plan.unknown else Exit.REFUSED
    return Exit.CHANGES if isinstance(decision, Nothing) and decision.drifted else Exit.OK
