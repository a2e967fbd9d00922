"""What the forge hears of a commit: a status for the fleet and one for each placement, and a comment with the plan.

All of it in the background, and bounded: a forge that is slow or down delays nothing and stops nothing.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import specs
from reconciler.applied import Applied
from reconciler.core.events import Event, RunEnded, RunStarted, StepEnded
from reconciler.core.gitops.decision import Decision, Nothing, Stop, Wait
from reconciler.core.machine import GOOD
from reconciler.core.plan import Plan
from reconciler.forges import Forge, ForgeError, forge_of
from reconciler.gitops.log import Log
from reconciler.views.forge_text import CommitStatus, commit_comment, commit_statuses, fleet_status

MOST = 200
"""So much is kept for a forge that does not answer; what is more is dropped, the oldest first."""

REMEMBERED = 1000
"""So many things that were said are known, so as not to say them again; the oldest are forgotten first."""

FIRST_WAIT_S, LONGEST_WAIT_S = 5.0, 300.0
"""Before a forge that did not answer is tried again, doubled each time; what is newer by then is said instead."""

LAST_WORDS_S = 2.0
"""So long the end of the agent waits for what the forge has not heard yet."""

Message = tuple[str, Callable[[Forge], Awaitable[None]]]


class Telling:
    """The forge of the spec, if it names one."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._fleet = ""
        self._settings: specs.Forge | None = None
        self._forge: Forge | None = None
        self._left: dict[str, Message] = {}
        self._said: dict[str, str] = {}
        self._news = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._warned = ""

    def about(self, spec: specs.Spec) -> None:
        """From now on as this spec says."""
        settings = spec.gitops.forge
        if settings != self._settings or self._fleet != spec.fleet:
            self._settings = settings
            self.to(forge_of(settings) if settings is not None else None, spec.fleet)

    def to(self, forge: Forge | None, fleet: str) -> None:
        """From now on this forge is told, of a fleet of this name."""
        self._forge, self._fleet = forge, fleet

    def begins(self, plan: Plan, commit: str) -> None:
        """The commit is being carried out."""
        self._tell(plan, commit, [RunStarted("", plan)])

    def ended(self, plan: Plan, commit: str, applied: Applied) -> None:
        """That is over."""
        self._tell(plan, commit, _events(plan, applied))

    def _tell(self, plan: Plan, commit: str, events: Sequence[Event]) -> None:
        for item in commit_statuses(plan, events):
            self._status(commit, item)
        self._comment(commit, commit_comment(plan, None, events))

    def applied(self, commit: str, why: str) -> None:
        """The fleet was there already."""
        self._status(commit, fleet_status(self._fleet, "success", why))

    def stands(self, commit: str, decision: Decision) -> None:
        """It is not carried out now."""
        if isinstance(decision, Stop):
            self._status(commit, fleet_status(self._fleet, "failure", decision.summary))
        elif isinstance(decision, Wait):
            self._status(commit, fleet_status(self._fleet, "pending", decision.why))
        elif isinstance(decision, Nothing) and not decision.drifted:
            self._status(commit, fleet_status(self._fleet, "success", decision.why))

    async def end(self) -> None:
        """Give it a moment to hear the rest, then stop."""
        if self._task is None:
            return
        deadline = asyncio.get_running_loop().time() + LAST_WORDS_S
        while self._left and asyncio.get_running_loop().time() < deadline:
            await asyncio.sleep(0.05)
        self._task.cancel()
        await asyncio.wait([self._task])

    def _status(self, commit: str, item: CommitStatus) -> None:
        def say(forge: Forge) -> Awaitable[None]:
            return forge.set_status(commit, item.context, item.state, item.description)

        self._put(f"{commit} {item.context}", f"{item.state} {item.description}", say)

    def _comment(self, commit: str, text: str) -> None:
        self._put(f"{commit} comment", text, lambda forge: forge.comment(commit, text))

    def _put(self, about: str, told: str, message: Callable[[Forge], Awaitable[None]]) -> None:
        """To be said when its turn comes; what was said already is not said again, what is outdated is not either."""
        if self._forge is None or self._said.get(about) == told:
            return
        self._left.pop(about, None)
        self._left[about] = (told, message)
        while len(self._left) > MOST:
            del self._left[next(iter(self._left))]
        self._news.set()
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._work(), name="forge")

    async def _work(self) -> None:
        """Say what is left, one after the other. A forge that does not answer is tried again, ever less often."""
        wait_s = FIRST_WAIT_S
        while True:
            await self._news.wait()
            self._news.clear()
            while self._left and self._forge is not None:
                about, (told, message) = next(iter(self._left.items()))
                if await self._is_said(message, self._forge):
                    wait_s = FIRST_WAIT_S
                    self._done(about, told, message)
                    continue
                if self._left.get(about) == (told, message):  # others have their turn before it
                    self._left[about] = self._left.pop(about)
                await asyncio.sleep(wait_s)
                wait_s = min(wait_s * 2, LONGEST_WAIT_S)
            if self._forge is None:
                self._left.clear()

    async def _is_said(self, message: Callable[[Forge], Awaitable[None]], forge: Forge) -> bool:
        """Whether the forge was told, or will never take it. The same failure is warned of once."""
        try:
            await message(forge)
        except ForgeError as error:
            if str(error) != self._warned:
                self._warned = str(error)
                self._log.warn(f"the forge was not told: {error}")
            return not (error.is_passing or error.is_unsure)
        self._warned = ""
        return True

    def _done(self, about: str, told: str, message: Callable[[Forge], Awaitable[None]]) -> None:
        if self._left.get(about) == (told, message):
            del self._left[about]
        self._said.pop(about, None)
        self._said[about] = told
        while len(self._said) > REMEMBERED:
            del self._said[next(iter(self._said))]


def _events(plan: Plan, applied: Applied) -> list[Event]:
    """What an apply comes to, as its events tell it: how each step ended, and the end."""
    bad = {item.step.id: item for item in applied.failures}
    events: list[Event] = []
    for step in plan.steps:
        if (failure := bad.get(step.id)) is not None:
            events.append(StepEnded(step, failure.status, failure.detail, 0.0, failure.logs, failure.cause))
        elif (status := applied.status.get(step.id)) is not None and status in GOOD:
            events.append(StepEnded(step, status, "", 0.0))
    return [*events, RunEnded(applied.run_id, int(applied.exit), applied.summary)]
