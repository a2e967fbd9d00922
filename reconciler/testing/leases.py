"""Leases of simulated nodes: what the program on a real node does, in virtual time.

A lease ends with its session, with the node's power, when it is broken, and when nothing was heard of the controller
for so long that it lapses. Its session ends with it.
"""

from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING

from reconciler.core.leases import Claim, Holder
from reconciler.nodes.errors import LeaseHeldError, LeaseLostError, NodeError
from reconciler.nodes.lease_program import BEAT_S, LAPSE_S
from reconciler.testing.world import World

if TYPE_CHECKING:
    from reconciler.testing.line import Line
    from reconciler.testing.node import SimNode

CHECK_S = 10.0
RELEASE_S = 1.0
"""Deadlines, as with real nodes."""


@dataclass
class LeaseSpan:
    """A lease from its beginning to its end, in virtual seconds; `until_s` is infinite while it is held."""

    node: str
    claim: Claim
    fence: int
    boot_id: str
    from_s: float
    until_s: float = inf
    follows_another: bool = False

    @property
    def is_held(self) -> bool:
        """Whether it has not ended."""
        return self.until_s == inf


class LeaseBook:
    """The leases of one node. `spans` is every one there was, in order."""

    def __init__(self, node: "SimNode", world: World) -> None:
        self.spans: list[LeaseSpan] = []
        self._node = node
        self._world = world
        self._line: Line | None = None
        self._heard_s = 0.0
        self._given_up: LeaseSpan | None = None
        self._fence = 0

    @property
    def held(self) -> LeaseSpan | None:
        """The lease that is held now."""
        self._world.sync()
        self._notice()
        return self.spans[-1] if self._line is not None else None

    def fence_of(self, line: "Line") -> int | None:
        """The number of the lease that this session has now; None when it has none."""
        held = self.held
        return held.fence if held is not None and self._line is line else None

    def take(self, claim: Claim, line: "Line") -> LeaseSpan:
        """A lease for a session. Raises `LeaseHeldError`."""
        held = self.held
        if held is not None:
            if held.claim != claim:
                raise LeaseHeldError(self._node.name, self._holder(held))
            self._end(closing=self._line is not line)
        follows_another = bool(self.spans) and (self.spans[-1].claim, self.spans[-1].fence) != (claim, self._fence)
        if follows_another or not self.spans:
            self._fence += 1
        boot_id, now_s = self._node.boot_id, self._world.now_s
        span = LeaseSpan(self._node.name, claim, self._fence, boot_id, now_s, follows_another=follows_another)
        self.spans.append(span)
        self._line, self._heard_s = line, self._world.now_s
        self._world.after(BEAT_S, lambda: self._beat(span))
        return span

    def check(self, span: LeaseSpan) -> None:
        """Raises `LeaseLostError` when it has ended."""
        if self.held is not span:
            raise LeaseLostError(f"the lease of {self._node.name} has ended")

    def release(self, span: LeaseSpan) -> None:
        """End it, and leave its session as it is."""
        if self.held is span:
            self._end(closing=False)

    def give_up(self, span: LeaseSpan) -> None:
        """Nothing is said for it any more: it ends as soon as the node hears that, or lapses."""
        self._given_up = span

    def holder(self) -> Holder | None:
        """Who has it."""
        held = self.held
        return self._holder(held) if held is not None else None

    def break_held(self) -> Holder | None:
        """End it, whoever has it, and never give its number again."""
        holder = self.holder()
        if holder is not None:
            self._end(closing=True)
            self._fence += 1
        return holder

    def _holder(self, span: LeaseSpan) -> Holder:
        return Holder(span.claim, span.fence, self._world.now_s - span.from_s)

    def _end(self, *, closing: bool) -> None:
        if self._line is not None and closing:
            self._line.close()
        self._line = None
        self.spans[-1].until_s = self._world.now_s

    def _beat(self, span: LeaseSpan) -> None:
        """A heartbeat comes, or would have come by now."""
        if self.held is not span or self._line is None:
            return
        if not self._line.is_silent:
            self._heard_s = self._world.now_s
        elif self._world.now_s - self._heard_s >= LAPSE_S:
            self._end(closing=True)
            return
        self._world.after(BEAT_S, lambda: self._beat(span))

    def _notice(self) -> None:
        """A session that has ended is noticed at once, unless the link is silent. Power that is lost takes all."""
        line = self._line
        if line is None:
            return
        is_gone = not self._node.is_on or self._node.boot_id != self.spans[-1].boot_id
        if is_gone or (line.is_lost and not line.is_silent):
            self._end(closing=True)
        elif self._given_up is self.spans[-1] and not line.is_silent:
            self._end(closing=False)


class SimLeases:
    """See `protocols.Leases`."""

    def __init__(self, line: "Line") -> None:
        self._line = line
        self._book = line.node.leases

    async def take(self, claim: Claim) -> "SimLease":
        """The lease."""
        span = await self._line.ask("lease", claim.run_id, lambda: self._book.take(claim, self._line))
        return SimLease(self._line, span)

    async def holder(self) -> Holder | None:
        """Who has it now."""
        return await self._line.ask("lease-holder", "", self._book.holder)

    async def break_held(self) -> Holder | None:
        """End the lease, whoever has it; who had it."""
        return await self._line.ask("lease-break", "", self._book.break_held)


class SimLease:
    """See `protocols.Lease`."""

    def __init__(self, line: "Line", span: LeaseSpan) -> None:
        self.fence = span.fence
        self.boot_id = span.boot_id
        self.follows_another = span.follows_another
        self._line = line
        self._span = span

    async def check(self) -> None:
        """Prove by a round trip that it is held right now."""

        async def check() -> None:
            self._line.node.leases.check(self._span)

        await self._line.call("lease-check", "", check, CHECK_S, needs_docker=False)

    async def release(self) -> None:
        """Give it back."""

        async def release() -> None:
            self._line.node.leases.release(self._span)

        try:
            await self._line.call("lease-release", "", release, RELEASE_S, needs_docker=False)
        except NodeError:
            return
        finally:
            self._line.node.leases.give_up(self._span)
