"""One apply of the agent, with an eye on the branch: a newer commit that is fit for it interrupts it safely."""

import asyncio
from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

import state
from reconciler.applied import Applied
from reconciler.core.gitops import events
from reconciler.core.gitops.decision import Apply, Heal
from reconciler.core.gitops.looks import Planned
from reconciler.core.gitops.memory import Outcome
from reconciler.core.outcome import Exit
from reconciler.core.plan import only_gangs
from reconciler.fleet import Fleet
from reconciler.gitops.git import GitError
from reconciler.gitops.looking import Looks
from reconciler.gitops.memory import Memory
from reconciler.images.errors import SupplyError
from reconciler.nodes.errors import NodeError

if TYPE_CHECKING:
    from reconciler.gitops.agent import Agent

COMMAND = "gitops"
"""What the runs of the agent are called in the history, and in leases."""

BROKEN_OFF = frozenset({Exit.INTERRUPTED, Exit.LEASE_HELD, Exit.ERROR})
"""Ends that say nothing about what was carried out: it is to be done again."""

LEASE_WAIT_S = 20.0
"""A lease of somebody who died lapses within it (`nodes/lease_program.py`)."""


@dataclass(frozen=True)
class Done:
    """How it ended. `is_superseded`: by a newer commit, which is to be looked at now."""

    exit: Exit
    is_superseded: bool = False


class Carrying:
    """What is carried out of one plan. `head`: the newest commit when it begins."""

    def __init__(self, agent: "Agent", fleet: Fleet, memory: Memory, planned: Planned, head: str) -> None:
        self._agent = agent
        self._fleet = fleet
        self._memory = memory
        self._planned = planned
        self._head = head
        self._newer: str | None = None

    async def apply(self, decision: Apply) -> Done:
        """Bring the fleet to the commit: before the first effect it is written down that it is tried."""
        agent, commit, now = self._agent, decision.commit, self._agent.standing.now
        self._memory.update(lambda before: before.began(commit, self._planned.observation, now()))
        agent.standing.begins(events.Attempted(commit, decision.gangs))
        agent.telling.begins(self._planned.plan, commit)
        applied = await self._carried(commit, decision.gangs)
        is_partial = bool(self._planned.plan.withheld)
        is_broken_off = applied.exit is Exit.ERROR
        outcome = Outcome.INTERRUPTED if is_broken_off else Outcome.of(applied.exit, withheld=is_partial)
        self._memory.update(lambda before: before.ended(outcome, now(), applied.summary, applied.run_id))
        agent.metrics.attempts.labels(str(outcome)).inc()
        agent.standing.tried(events.AttemptEnded(commit, outcome, int(applied.exit), applied.summary, applied.run_id))
        agent.telling.ended(self._planned.plan, commit, applied)
        return Done(applied.exit, self._newer is not None)

    async def heal(self, decision: Heal) -> Done:
        """Repair what drifted, and nothing else."""
        agent, now = self._agent, self._agent.standing.now
        began_s = now()
        self._memory.update(lambda before: before.repairing(decision.gangs, began_s))
        agent.standing.begins(events.HealBegun(decision.commit, decision.gangs))
        applied = await self._carried(decision.commit, decision.gangs)
        ok = applied.exit is Exit.OK
        counts = None if applied.exit in BROKEN_OFF else ok
        self._memory.update(lambda before: before.repaired(decision.gangs, began_s, now(), ok=counts))
        if counts is not None:
            agent.metrics.heals.labels(str(ok).lower()).inc()
        agent.standing.healed(events.HealEnded(decision.commit, decision.gangs, ok, applied.summary, applied.run_id))
        return Done(applied.exit, self._newer is not None)

    async def _carried(self, commit: str, gangs: Collection[str]) -> Applied:
        """Apply these gangs, and watch the branch and the wish to stop meanwhile.

        What goes wrong outside of it (the record, a lease that a node cannot give) is no attempt of the commit.
        """
        stop = asyncio.Event()
        beside = [asyncio.ensure_future(self._watch(commit, stop)), asyncio.ensure_future(self._pass_on(stop))]
        part = only_gangs(self._planned.plan, lambda gang: gang in gangs)
        try:
            return await self._fleet.apply(part, self._agent.standing.tell, stop, COMMAND, wait_s=LEASE_WAIT_S)
        except (state.StateError, NodeError, SupplyError, OSError) as error:
            self._agent.standing.failed("apply", str(error), getattr(error, "hint", ""))
            return Applied("", Exit.ERROR, str(error), (), {})
        finally:
            for task in beside:
                task.cancel()
            await asyncio.wait(beside)

    async def _watch(self, commit: str, stop: asyncio.Event) -> None:
        """Fetch as often as ever; the first commit that is fit to take over sets `stop`."""
        agent = self._agent
        while not stop.is_set():
            await agent.pause(agent.options.interval_s)
            looks = Looks(agent.workplace, agent.mirror, agent.options.path, agent.load)
            try:
                self._newer = await agent.superseding(commit, self._head, looks)
            except (GitError, state.StateError, NodeError, SupplyError, OSError) as error:
                agent.standing.failed("watch", str(error), getattr(error, "hint", ""))
            finally:
                await looks.close()
            if self._newer is not None:
                agent.standing.superseded(events.Superseded(commit, self._newer))
                stop.set()

    async def _pass_on(self, stop: asyncio.Event) -> None:
        await self._agent.stopping.wait()
        stop.set()
