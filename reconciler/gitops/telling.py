"""What the forge hears of a commit: a status for the fleet and one for each placement, and a comment with the plan.

All of it in the background, and bounded: a forge that is slow or down delays nothing and stops nothing.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection

import specs
from reconciler.applied import Applied
from reconciler.core.gitops.decision import Decision, Nothing, Stop, Wait
from reconciler.core.gitops.memory import Outcome
from reconciler.core.plan import Plan
from reconciler.forges import Forge, ForgeError, State, forge_of
from reconciler.gitops.log import Log
from reconciler.views.plan_markdown import plan_markdown

MOST = 200
"""So much is kept for a forge that does not answer; what is more is dropped, the oldest first."""

LAST_WORDS_S = 2.0
"""So long the end of the agent waits for what the forge has not heard yet."""

STATES: dict[Outcome, State] = {
    Outcome.APPLIED: "success",
    Outcome.PARTIAL: "pending",
    Outcome.INTERRUPTED: "pending",
    Outcome.LEASE_HELD: "pending",
    Outcome.FAILED: "failure",
    Outcome.REFUSED: "failure",
    Outcome.NEEDS_A_PERSON: "error",
}

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

    def about(self, spec: specs.Spec) -> None:
        """From now on as this spec says."""
        settings = spec.gitops.forge
        self._fleet = spec.fleet
        if settings != self._settings:
            self._settings, self._forge = settings, forge_of(settings) if settings is not None else None

    def begins(self, plan: Plan, commit: str, gangs: Collection[str]) -> None:
        """The commit is being carried out."""
        self._status(commit, "", "pending", f"applying: {', '.join(sorted(gangs))}")
        for gang in gangs:
            self._status(commit, gang, "pending", "applying")
        self._comment(commit, f"Applying now.\n\n{plan_markdown(plan, {})}")

    def ended(self, plan: Plan, commit: str, gangs: Collection[str], outcome: Outcome, applied: Applied) -> None:
        """That is over."""
        state = STATES.get(outcome, "error")
        self._status(commit, "", state, f"{outcome}: {applied.summary}")
        failed = {item.step.gang: item.detail for item in applied.failures}
        for gang in gangs:
            bad = failed.get(gang)
            well: State = "success" if outcome is Outcome.APPLIED else state
            self._status(commit, gang, "failure" if bad else well, bad or str(outcome))
        self._comment(commit, f"**{outcome}**: {applied.summary}\n\n{plan_markdown(plan, {})}")

    def applied(self, commit: str, why: str) -> None:
        """The fleet was there already."""
        self._status(commit, "", "success", why)

    def stands(self, commit: str, decision: Decision) -> None:
        """It is not carried out now."""
        if isinstance(decision, Stop):
            self._status(commit, "", "failure", decision.summary)
        elif isinstance(decision, Wait):
            self._status(commit, "", "pending", decision.why)
        elif isinstance(decision, Nothing) and not decision.drifted:
            self._status(commit, "", "success", decision.why)

    async def end(self) -> None:
        """Give it a moment to hear the rest, then stop."""
        if self._task is None:
            return
        deadline = asyncio.get_running_loop().time() + LAST_WORDS_S
        while self._left and asyncio.get_running_loop().time() < deadline:
            await asyncio.sleep(0.05)
        self._task.cancel()
        await asyncio.wait([self._task])

    def _status(self, commit: str, gang: str, state: State, text: str) -> None:
        context = f"fleet/{self._fleet}/{gang}" if gang else f"fleet/{self._fleet}"
        self._put(
            f"{commit} {context}", f"{state} {text}", lambda forge: forge.set_status(commit, context, state, text)
        )

    def _comment(self, commit: str, body: str) -> None:
        text = f"<!-- fleet {self._fleet} {commit[:12]} -->\n{body}"
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
        while True:
            await self._news.wait()
            self._news.clear()
            while self._left:
                about = next(iter(self._left))
                told, message = self._left[about]
                if self._forge is None:
                    self._left.clear()
                    break
                try:
                    await message(self._forge)
                except ForgeError as error:
                    self._log.warn(f"the forge was not told: {error}")
                if self._left.get(about) == (told, message):
                    del self._left[about]
                    self._said[about] = told
