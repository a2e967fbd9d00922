"""Tries a step on its node. After a lost connection the node is looked at and the step is tried again.

The rule for a node that goes away between cut and confirm: forward steps are tried a few times, then the gang goes
back. The way back waits for the node, for `RETURN_S`: the fleet is to serve again, and a reboot takes minutes. Where
nothing served before, nothing is waited for: what was booted there is the next apply's affair. A node that was booted
meanwhile makes forward steps stale (what ran there has ended); the way back goes on there, since all that it starts and
stops is known by its id. A node that somebody else had the lease of meanwhile is not touched.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from functools import partial

from reconciler.core.machine import Status
from reconciler.core.plan import Phase, Plan, Step, is_return
from reconciler.execution.fencing import FencedNode
from reconciler.execution.leasing import LeaseKeeper
from reconciler.execution.outcomes import Outcome, failed, stale
from reconciler.execution.secrets import SecretError
from reconciler.nodes.errors import ErrorKind, LeaseLostError, NodeError
from reconciler.nodes.protocols import Fleet, Node

CONNECT_S = 10.0
PAUSES_S = (1.0, 2.0)
"""Between the tries of a step that goes forward."""

RETURN_S = 300.0
"""How long the way back waits for a node that does not answer."""

LONGEST_PAUSE_S = 10.0

Handler = Callable[[Step, FencedNode], Awaitable[Outcome]]
Say = Callable[[str], None]


@dataclass(frozen=True)
class Attempts:
    """How steps of one run are tried."""

    plan: Plan
    fleet: Fleet
    leases: LeaseKeeper

    async def of(self, step: Step, handler: Handler, say: Say) -> Outcome:
        """Try until it worked, the node has said no, or there is no more patience. `say` is told what is waited for."""
        pauses = _pauses(RETURN_S) if self._brings_back(step) else iter(PAUSES_S)
        while True:
            try:
                return await self._once(step, handler)
            except LeaseLostError as error:
                return stale(told(error))
            except SecretError as error:
                return failed(str(error))
            except NodeError as error:
                if error.kind is ErrorKind.HELD:
                    return stale(told(error))
                if not error.is_transport:
                    return failed(told(error))
                pause_s = next(pauses, None)
                if pause_s is None:
                    return Outcome(Status.UNREACHABLE, told(error))
                say(f"waits for {step.node} to answer: {error.message}")
            await asyncio.sleep(pause_s)

    def _brings_back(self, step: Step) -> bool:
        """Whether the step is on the way back of a group that served something before."""
        ways = (way for way in self.plan.rollbacks if step in way.steps)
        return any(is_return(item) for way in ways for item in way.steps)

    async def _once(self, step: Step, handler: Handler) -> Outcome:
        node = await self.fleet.connect(step.node or "", CONNECT_S)
        return await handler(step, FencedNode(node, partial(self._prove, step, node)))

    async def _prove(self, step: Step, node: Node) -> None:
        try:
            await self.leases.confirm(node)
        except LeaseLostError as error:
            if step.phase is not Phase.ROLLBACK or not error.is_reboot:
                raise
            self.leases.accept(node.name)


def _pauses(patience_s: float) -> Iterator[float]:
    pause_s, waited_s = 1.0, 0.0
    while waited_s < patience_s:
        yield pause_s
        waited_s += pause_s
        pause_s = min(pause_s * 2, LONGEST_PAUSE_S)


def told(error: NodeError) -> str:
    """What happened, and what a person can do."""
    return f"{error.message}{f' ({error.hint})' if error.hint else ''}"
