"""The leases of one run: all or none are taken, each is proved right before an effect, all are given back."""

import asyncio
import contextlib
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from reconciler.core.leases import Claim, Holder, NodeLease
from reconciler.core.observed import Unknown, UnknownKind
from reconciler.nodes.errors import ErrorKind, LeaseHeldError, LeaseLostError, NodeError
from reconciler.nodes.protocols import Fleet, Lease, Node

CONNECT_S = 10.0
RELEASE_S = 1.8
"""Whatever hangs: what could not be given back by then lapses."""

SETTLE_S = 3.0
"""How long a lease that is held is asked for again, though nobody waits: a rival that fails elsewhere lets go soon."""

POLL_S = 1.0

OnWait = Callable[[Holder, str], None]
"""Told who has the lease of which node, as the waiting begins and whenever that is somebody else."""


@dataclass
class _Held:
    """A lease, the session it was taken over, and why what this run knew of the node counts no more."""

    node: Node
    lease: Lease
    stale: LeaseLostError | None = None


@dataclass
class LeaseKeeper:
    """The leases of one claim on the nodes of one fleet. They beat by themselves until `release`."""

    fleet: Fleet
    claim: Claim
    waited: bool = False
    """Whether a lease was not had at once: what was seen before may be outdated."""
    rebooted: set[str] = field(default_factory=set)
    """Nodes that were booted while this held their leases."""
    _held: dict[str, _Held] = field(default_factory=dict)
    _turns: dict[str, asyncio.Lock] = field(default_factory=dict)

    async def take(
        self, nodes: Collection[str], wait_s: float | None = 0.0, on_wait: OnWait = lambda holder, node: None
    ) -> dict[str, NodeError]:
        """Take the leases of these nodes, all or none; those of nodes that cannot be reached are told and left out.

        `wait_s`: how long to wait for what somebody else has; None is as long as it takes. Raises `LeaseHeldError`
        after that, and `NodeError` of a node that has no lease to give; then none is held that was asked for here.
        """
        wanted = sorted(set(nodes) - self._held.keys())
        try:
            return await self._take_in_order(wanted, wait_s, on_wait)
        except BaseException:
            await self._let_go(wanted)
            raise

    async def _take_in_order(self, wanted: list[str], wait_s: float | None, on_wait: OnWait) -> dict[str, NodeError]:
        """All at once; when one is held, those after it are let go of until it is had.

        So whoever waits has only leases that come before: no two controllers wait for each other.
        """
        left_out: dict[str, NodeError] = {}
        patience = _Patience(wait_s, on_wait)
        while wanted:
            ends = await asyncio.gather(*(self._first_taken(name) for name in wanted))
            for name, end in zip(wanted, ends, strict=True):
                if end is not None and end.kind is not ErrorKind.HELD:
                    if not end.is_transport:
                        raise end
                    left_out[name] = end
            held = [(name, end) for name, end in zip(wanted, ends, strict=True) if isinstance(end, LeaseHeldError)]
            if not held:
                break
            self.waited = True
            name, end = held[0]
            wanted = wanted[wanted.index(name) :]
            await self._let_go(wanted[1:])
            silent = await self._wait_for(name, end, patience)
            left_out |= {name: silent} if silent is not None else {}
            wanted = wanted[1:]
        return left_out

    async def _wait_for(self, name: str, end: NodeError | None, patience: "_Patience") -> NodeError | None:
        """None when it is had; why not, when the node went away meanwhile."""
        while isinstance(end, LeaseHeldError):
            await patience.wait(end)
            end = await self._first_taken(name)
        if end is not None and not end.is_transport:
            raise end
        return end

    async def _first_taken(self, name: str) -> NodeError | None:
        """Take one; why it could not be had."""
        try:
            node = await self.fleet.connect(name, CONNECT_S)
            self._held[name] = _Held(node, await node.leases.take(self.claim))
        except NodeError as error:
            return error
        return None

    async def confirm(self, node: Node) -> None:
        """Prove that the lease of the node is held, over this very session. For right before an effect.

        After a lost connection it is taken again. Raises `LeaseLostError` when somebody else had it meanwhile, it was
        broken, or the node was booted: then also each time after, until `accept`. Raises `NodeError` of transport, and
        `LeaseHeldError`.
        """
        async with self._turns.setdefault(node.name, asyncio.Lock()):
            held = self._held.get(node.name)
            if held is not None and held.stale is not None:
                raise held.stale
            if held is not None and held.node is node and await _is_had(held.lease):
                return
            lease = await node.leases.take(self.claim)
            stale = _what_happened(node.name, held.lease, lease) if held is not None else None
            self._held[node.name] = _Held(node, lease, stale)
            if stale is not None:
                self.rebooted |= {node.name} if stale.is_reboot else set()
                raise stale

    def accept(self, node: str) -> None:
        """What is on the node now counts from here on, whatever happened to its lease: for whoever looks again."""
        held = self._held.get(node)
        if held is not None:
            held.stale = None

    @property
    def nodes(self) -> frozenset[str]:
        """The nodes whose lease was taken and not given back."""
        return frozenset(self._held)

    async def release(self) -> None:
        """Give all back, within two seconds whatever hangs. Never raises; no effect when it is done."""
        await self._let_go(list(self._held))

    async def _let_go(self, names: Collection[str]) -> None:
        leases = [self._held.pop(name).lease for name in names if name in self._held]
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(RELEASE_S):
                await asyncio.gather(*(lease.release() for lease in leases), return_exceptions=True)


class _Patience:
    """How long is waited for one after the other, and who has been told of."""

    def __init__(self, wait_s: float | None, on_wait: OnWait) -> None:
        self._until_s = None if wait_s is None else asyncio.get_running_loop().time() + max(wait_s, SETTLE_S)
        self._on_wait = on_wait if wait_s is None or wait_s > 0 else None
        self._told: tuple[str, Claim] | None = None

    async def wait(self, held: LeaseHeldError) -> None:
        """A moment. Raises what it is given when there is no more time."""
        if self._until_s is not None and asyncio.get_running_loop().time() >= self._until_s:
            raise held
        if self._on_wait is not None and self._told != (held.node, held.holder.claim):
            self._told = (held.node, held.holder.claim)
            self._on_wait(held.holder, held.node)
        await asyncio.sleep(POLL_S)


async def _is_had(lease: Lease) -> bool:
    """Whether it is held; not when its program has ended while the connection stands."""
    try:
        await lease.check()
    except LeaseLostError:
        return False
    return True


def _what_happened(node: str, before: Lease, now: Lease) -> LeaseLostError | None:
    """Why what was known of the node counts no more, by the lease before and the one taken again."""
    if before.boot_id != now.boot_id and not now.follows_another:
        message = f"{node} was booted since its lease was taken"
        return LeaseLostError(message, "plan again: what ran there has ended", is_reboot=True)
    if before.boot_id != now.boot_id or before.fence != now.fence:
        message = f"the lease of {node} was broken, or had by another run, while the connection was lost"
        return LeaseLostError(message, "plan again: the node may have been changed meanwhile")
    return None


async def leases_of(fleet: Fleet, nodes: Collection[str], deadline_s: float) -> tuple[NodeLease, ...]:
    """Who has which node, all asked at once. A node that cannot be asked is a fact, not an exception."""
    return tuple(await asyncio.gather(*(_lease_of(fleet, name, deadline_s) for name in nodes)))


async def _lease_of(fleet: Fleet, name: str, deadline_s: float) -> NodeLease:
    until_s = asyncio.get_running_loop().time() + deadline_s
    try:
        node = await fleet.connect(name, deadline_s)  # keeps the deadline itself, and knows best why it failed
        async with asyncio.timeout_at(until_s):
            return NodeLease(name, await node.leases.holder())
    except TimeoutError:
        reason = f"its lease was not told within {deadline_s:g} s"
        return NodeLease(name, None, Unknown(name, UnknownKind.TIMEOUT, reason))
    except NodeError as error:
        return NodeLease(name, None, error.as_unknown(name))
