"""The loop: fetch, look, decide, carry out, rest. What is decided is `core/gitops`; here it is only done and told.

A turn ends when there is nothing more to do now. What fails in it is told and tried again at the next one.
"""

import asyncio
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import state
from reconciler.core.envelope import Told
from reconciler.core.gitops import events
from reconciler.core.gitops.decide import decide
from reconciler.core.gitops.decision import Adopt, Apply, Commit, Decision, GiveUp, Heal, Look, Seen
from reconciler.core.gitops.forward import forward
from reconciler.core.gitops.looks import Planned, learned
from reconciler.core.gitops.memory import Remembered
from reconciler.core.outcome import Exit
from reconciler.gitops.carrying import BROKEN_OFF, Carrying, Done
from reconciler.gitops.commits import Known, known
from reconciler.gitops.endpoint import Metrics
from reconciler.gitops.git import GitError
from reconciler.gitops.log import Log
from reconciler.gitops.looking import BrokenError, Load, Looks
from reconciler.gitops.memory import Memory
from reconciler.gitops.mirror import Mirror
from reconciler.gitops.rules import Rules, rules_of
from reconciler.gitops.standing import Standing
from reconciler.gitops.telling import Telling
from reconciler.gitops.waiting import broken_off, first_of, growing_s
from reconciler.gitops.workplace import WorkError, Workplace
from reconciler.images.errors import SupplyError
from reconciler.nodes.errors import NodeError

AT_ONCE = 8
"""So often the agent looks again without a rest: a commit, its end, what came meanwhile."""

START_AGAIN = "what it remembered is gone with it: start the agent again, and it begins anew"

TROUBLES = (GitError, BrokenError, state.StateError, NodeError, SupplyError, OSError)
"""What goes wrong outside of the agent, and may be well at the next turn."""


@dataclass(frozen=True)
class Options:
    """`path`: the spec within the repository, or its folder. `heal`: instead of what the spec says."""

    path: str = "."
    interval_s: float = 60.0
    heal: str | None = None


@dataclass
class Turn:
    """What one turn works with. `head`: the newest commit that is known."""

    looks: Looks
    memory: Memory
    head: Commit | None
    rules: Rules
    plans: dict[str, Planned | None]

    def planned(self, commit: str) -> Planned:
        """What the look at a commit said that something was decided by."""
        found = self.plans.get(commit)
        if found is None:
            raise LookupError(f"nothing was planned for {commit}")
        return found


class Agent:
    """Follows one branch. Set `wake` to have it look at once, `stopping` to end it.

    `has_folder`: whether the work folder is the one that it took.
    """

    def __init__(
        self,
        workplace: Workplace,
        mirror: Mirror,
        options: Options,
        load: Load,
        log: Log,
        tell: Callable[[Told], object] = lambda event: None,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.workplace = workplace
        self.mirror = mirror
        self.options = options
        self.wake = asyncio.Event()
        self.stopping = asyncio.Event()
        self.metrics = Metrics()
        self.standing = Standing(workplace, log, tell, self.metrics, now)
        self.telling = Telling(log)
        self.load = load
        self.has_folder: Callable[[], bool] = lambda: True
        self._log = log
        self._tell = tell
        self._now = now
        self._place = workplace.place((workplace.told() or {}).get("state_at"))
        self._failures = 0
        self._stumbles = 0
        self._beat_s = time.monotonic()
        self._carrying: Carrying | None = None

    @property
    def is_alive(self) -> bool:
        """Whether the loop turns: a turn takes no longer than a fetch and a look may."""
        return time.monotonic() - self._beat_s < 3 * self.options.interval_s + 900.0

    def beat(self) -> None:
        """The loop has come by."""
        self._beat_s = time.monotonic()

    async def run(self, *, once: bool = False) -> Exit:
        """Turn until it is told to stop; with `once`, until there is nothing more to do now. The exit code."""
        turning = 0
        while not self.stopping.is_set():
            self.beat()
            if not self.has_folder():
                raise WorkError(f"{self.workplace.folder} was removed or replaced while the agent ran", START_AGAIN)
            is_more = await self._unless_stopping(self._turned())
            turning = turning + 1 if is_more else 0
            if is_more and turning < AT_ONCE:
                continue
            if once:
                break
            await self._rest()
        await self.telling.end()
        return self.standing.exit(once=once)

    async def _turned(self) -> bool:
        try:
            return await self.turn()
        except TROUBLES as error:
            self.metrics.errors.inc()
            self.standing.failed("look", str(error), getattr(error, "hint", ""))
            return False

    async def turn(self) -> bool:
        """One look at the branch and the fleet, and what follows from it; whether to look again at once."""
        head = await self._fetched()
        looks = Looks(self.workplace, self.mirror, self.options.path, self.load, self._now)
        try:
            turn = await self._begun(looks, head)
            decision = await self._decided(turn)
            return await self._carried_out(turn, decision)
        finally:
            await looks.close()

    async def _fetched(self) -> str | None:
        """The newest commit; the one that is known when the remote does not answer: repairs go on without it."""
        try:
            head = await self.mirror.fetch()
        except (GitError, OSError) as error:
            self._failures += 1
            self.metrics.fetch_failures.inc()
            self.standing.failed("fetch", str(error), getattr(error, "hint", ""))
            return await self.mirror.head()
        self._failures = 0
        self.standing.fetched()
        if self.standing.is_new(head):
            self.standing.came(head, await self.mirror.subject(head))
        return head

    async def _begun(self, looks: Looks, head: str | None) -> Turn:
        found = await self._known(looks, head)
        if found.fleet is not None and found.fleet.folder != self._place:
            self._place = found.fleet.folder
            self.standing.keeps(str(self._place))
            found = await self._known(looks, head)  # what was applied last is remembered there
        if found.fleet is not None:
            self.telling.about(found.fleet.spec)
        return self._turn(looks, found)

    async def _known(self, looks: Looks, head: str | None) -> Known:
        return await known(looks, Memory(self._place), head, self.standing.failed)

    def _turn(self, looks: Looks, found: Known) -> Turn:
        spec = found.fleet.spec if found.fleet is not None else None
        return Turn(looks, Memory(self._place), found.commit, rules_of(spec, self._now(), self.options.heal), {})

    async def _decided(self, turn: Turn) -> Decision:
        """Ask what to do until it is more than a look."""
        while True:
            seen = self._seen(turn)
            decision = decide(seen)
            if isinstance(decision, Look):
                await self._looked(turn, decision.commit)
            elif isinstance(decision, Adopt):
                self._adopt(turn, decision.commit)
            elif isinstance(decision, GiveUp):
                turn.memory.update(partial(Remembered.giving_up, why=dict(decision.why), now_s=seen.now_s))
                self.standing.gave_up(dict(decision.why))
            else:
                self.standing.decided(turn.head, decision, turn.memory.recalled(), seen.suspended, turn.plans)
                self._tidy(turn)
                return decision

    def _seen(self, turn: Turn) -> Seen:
        now_s, rules = self._now(), turn.rules
        suspended = turn.memory.suspended(now_s)
        return Seen(now_s, turn.head, turn.memory.recalled(), turn.plans, suspended, rules.opening, rules.settings)

    def _adopt(self, turn: Turn, commit: str) -> None:
        planned = turn.planned(commit)
        turn.memory.update(lambda before: learned(replace(before, applied=commit), commit, planned))
        self.workplace.point(commit)
        if planned.is_told:
            self.telling.applied(commit, "nothing to do: the fleet is as this commit says")

    async def _looked(self, turn: Turn, commit: str) -> None:
        self.beat()
        planned = await turn.looks.planned(commit)
        turn.plans[commit] = planned
        if planned is None:
            return
        plan = planned.plan
        self._tell(events.CommitPlanned(commit, plan.id, len(plan.steps), plan.changes))
        turn.memory.update(lambda before: learned(before, commit, planned))

    async def _learned(self, turn: Turn, commit: str) -> None:
        """What came of it, as the fleet shows it: whatever commit is there by then, this is the one to go back to."""
        planned = None if self.stopping.is_set() else await turn.looks.planned(commit)
        if planned is not None:
            turn.memory.update(lambda before: learned(before, commit, planned))

    def _tidy(self, turn: Turn) -> None:
        """Forget the files of commits that no decision asks for any more."""
        memory = turn.memory.recalled()
        named = {memory.applied, memory.good, turn.head.id if turn.head else None}
        self.workplace.keep({*filter(None, named), *(item.commit for item in memory.proven)})

    async def _carried_out(self, turn: Turn, decision: Decision) -> bool:
        if isinstance(decision, Apply | Heal):
            planned = turn.planned(decision.commit)
            head = turn.head.id if turn.head is not None else decision.commit
            fleet = await turn.looks.fleet(decision.commit)
            self.workplace.point(decision.commit)
            self._carrying = Carrying(self, fleet, turn.memory, planned, head)
            try:
                done = await (
                    self._carrying.apply(decision) if isinstance(decision, Apply) else self._carrying.heal(decision)
                )
            finally:
                self._carrying = None
                self.standing.rested()
            await self._learned(turn, decision.commit)
            return self._ended(done)
        if turn.head is not None:
            self.telling.stands(turn.head.id, decision)
        return False

    def _ended(self, done: Done) -> bool:
        self.standing.ended(done.exit)
        self._stumbles = self._stumbles + 1 if done.exit is Exit.ERROR else 0
        return done.is_superseded or done.exit not in BROKEN_OFF

    async def superseding(self, commit: str, head: str, looks: Looks) -> str | None:
        """Fetch; the newest commit where it may take the place of `commit`, which is being carried out, else None.

        `head`: the newest one when that began. One that would not be carried out itself interrupts nothing: what is
        stopped by then would stay so.
        """
        self.beat()
        newest = await self._fetched()
        if newest is None or newest in {head, commit}:
            return None
        turn = self._turn(looks, await self._known(looks, newest))
        if isinstance(forward(self._seen(turn)), Look):
            turn.plans[newest] = await looks.planned(newest)
        ahead = forward(self._seen(turn))
        if isinstance(ahead, Apply | Adopt):
            return newest
        self.standing.unfit(newest, getattr(ahead, "why", "") or getattr(ahead, "summary", ""))
        return None

    async def _rest(self) -> None:
        """Until the next look: the interval, or what a decision waits for, or until somebody wakes it."""
        rest_s = growing_s(self.options.interval_s, max(self._failures, self._stumbles))
        until_s = self.standing.until_s
        if until_s is not None:
            rest_s = min(rest_s, max(0.1, until_s - self._now()))
        self.standing.rests(self._now() + rest_s)
        await self.pause(rest_s)

    async def pause(self, seconds: float) -> None:
        """Rest, unless it is woken or told to stop."""
        await first_of(seconds, self.wake, self.stopping)
        self.wake.clear()

    async def _unless_stopping(self, work: Coroutine[Any, Any, bool]) -> bool:
        """What the work says. When it is told to stop: a look is broken off, an apply ends by itself, safely."""
        return bool(await broken_off(work, self.stopping, unless=lambda: self._carrying is not None))
