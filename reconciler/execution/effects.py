"""Carries out one step. Every effect looks first: done already is a no-op, changed since the plan is stale.

After a lost reply the node is asked again and looked at, so no effect happens twice. Nothing here decides what to do;
it only finds out whether what the plan says is still right.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

from reconciler.core.desired import Gang
from reconciler.core.explain import describe_end
from reconciler.core.gate import Health, Verdict
from reconciler.core.identity import labels, made_by, proved_name, unproved_name
from reconciler.core.log_text import readable
from reconciler.core.machine import Status
from reconciler.core.neighbours import intruders, told
from reconciler.core.observed import Container
from reconciler.core.plan import Op, Phase, Plan, Step, is_return
from reconciler.core.room import holders, shortage
from reconciler.core.transfer import Relay
from reconciler.execution.attempts import CONNECT_S, Attempts, Handler
from reconciler.execution.attempts import told as told_error
from reconciler.execution.copying import Fetching
from reconciler.execution.fencing import FencedNode
from reconciler.execution.gate import GangWatch, now_s
from reconciler.execution.leasing import LeaseKeeper
from reconciler.execution.moved import Moved
from reconciler.execution.outcomes import APPLIED, NOOP, Outcome, failed, stale
from reconciler.execution.postmortem import explained, named, shown
from reconciler.execution.preflight import Preflights, removed
from reconciler.execution.proving import Usual, wait_until_proved
from reconciler.execution.secrets import Secrets
from reconciler.nodes.errors import ErrorKind, NodeError
from reconciler.nodes.protocols import Fleet, Progress

ROOM_S = 120.0
POLL_S = 1.0

OnProgress = Callable[[Progress], None]


def operation_of(run_id: str, step: Step) -> str:
    """The operation id that lands on the node. It names the run: what another run made is never taken for our own."""
    return f"{run_id}/{step.id}"


@dataclass(frozen=True)
class Effects:
    """The effects of one run of a plan on one fleet."""

    plan: Plan
    fleet: Fleet
    run_id: str
    secrets: Secrets
    leases: LeaseKeeper
    usual: Usual
    _started: dict[str, str] = field(default_factory=dict)
    """By step: when its container had last been started, before this run first tried to."""

    @cached_property
    def _preflights(self) -> Preflights:
        return Preflights(self.plan, self.run_id, self.secrets)

    async def carry_out(self, step: Step, on_progress: OnProgress) -> Outcome:
        """Do the step. Never raises for trouble of a node; cancellation goes through."""
        hide = self.hider(step)
        say = partial(_say_hidden, on_progress, hide)
        if step.op is Op.VERIFY:
            outcome = await self._verify(step, say)
        else:
            attempts = Attempts(self.plan, self.fleet, self.leases)
            outcome = await attempts.of(step, self._handler(step, say), lambda text: say(Progress(0, None, text)))
        return shown(named(step, outcome), hide)

    def hider(self, step: Step) -> Callable[[str], str]:
        """Takes the values of the gang's secrets out of a text: engines may print what they were given."""
        gang = self.plan.gang_of(step)
        return self.secrets.hider(rank.container for rank in (gang.ranks if gang is not None else ()))

    def _handler(self, step: Step, on_progress: OnProgress) -> Handler:
        waits: dict[Op, Callable[[Step, FencedNode, OnProgress], Awaitable[Outcome]]] = {
            Op.PULL: self._pull,
            Op.PREFLIGHT: self._preflights.carry_out,
            Op.FETCH: Fetching(self.plan, self.fleet).fetch,
            Op.ROOM: self._room,
            Op.READY: self._ready,
        }
        if step.op in waits:
            return lambda step, node: waits[step.op](step, node, on_progress)
        handlers: dict[Op, Handler] = {
            Op.CREATE: self._create,
            Op.STOP: self._stop,
            Op.UNPROVE: _unprove,
            Op.START: self._start,
            Op.CONFIRM: _confirm,
            Op.REMOVE: _remove,
        }
        return handlers[step.op]

    async def _pull(self, step: Step, node: FencedNode, on_progress: OnProgress) -> Outcome:
        gang = self.plan.gang(step.gang)
        pin = gang.ranks[step.rank or 0].container.image
        if await node.images.present(pin) is not None:
            return NOOP
        moved = Moved(on_progress, self._relayed(step))
        await node.images.stage(pin, self._platform(step), moved, Relay.of(gang, step.seed) if step.seed else None)
        return Outcome(Status.APPLIED, moved.told())

    def _relayed(self, step: Step) -> str:
        """What a relay is to the node of this pull, for people."""
        if step.seed != step.node:
            return f"from {step.seed}" if step.seed else ""
        pulls = (item for item in self.plan.steps if (item.op, item.gang, item.seed) == (Op.PULL, step.gang, step.seed))
        return f"passes it on to {' '.join(item.node or '' for item in pulls if item.node != step.node)}"

    def _platform(self, step: Step) -> str:
        return dict(self.plan.platforms)[step.node or ""]

    async def _create(self, step: Step, node: FencedNode) -> Outcome:
        gang = self.plan.gang(step.gang)
        rank = gang.ranks[step.rank or 0]
        operation = operation_of(self.run_id, step)
        found = await node.containers.inspect(step.target)
        found = found or await node.containers.inspect(proved_name(step.target))
        if found is not None:
            is_same = found.owner is not None and found.owner.operation == operation
            return NOOP if is_same else stale(f"{found.name} is there already on {node.name}")
        image = await node.images.present(rank.container.image)
        if image is None:
            return stale(f"image {rank.container.image.short} is not on {node.name} any more")
        marks = labels(self.plan.fleet, gang, rank, step.revision or 1, operation, image.id)
        secrets, told = await self.secrets.handed(rank.container)
        try:
            await node.containers.create(step.target, rank.container, image.id, marks | told, secrets)
        except NodeError as error:
            if error.kind is ErrorKind.CONFLICT:  # it was not there a moment ago
                return stale(f"somebody else made {step.target} on {node.name} just now")
            raise
        return APPLIED

    async def _stop(self, step: Step, node: FencedNode) -> Outcome:
        found = await _look(step, node) or await node.containers.inspect(proved_name(step.target))
        if found is None or not found.is_running:
            return NOOP
        if found.owner is None and not self._may_stop(step, found):
            return stale(f"{step.target} on {node.name} is not ours")
        if step.container_id is None and not (found.owner and made_by(self.run_id, found.owner)):
            return stale(f"{step.target} on {node.name} was made by another run")
        await node.containers.stop(found.id, step.grace_s if step.grace_s is not None else 30.0)
        return APPLIED

    def _may_stop(self, step: Step, found: Container) -> bool:
        """Whether the spec names this foreign container as one that may go."""
        gang = self.plan.gang_of(step)
        return gang is not None and found.name in gang.may_stop and found.id == step.container_id

    async def _start(self, step: Step, node: FencedNode) -> Outcome:
        gang = self.plan.gang_of(step)
        found = await _look(step, node)
        if found is None:
            return stale(f"{step.target} is gone from {node.name}")
        if not _is_planned(found, step, gang):
            return stale(f"{step.target} on {node.name} is not the container that was planned")
        if self._started.setdefault(step.id, found.started_at) != found.started_at:
            return APPLIED  # by an earlier try whose reply was lost; where it has ended since, the gate tells how
        if found.state not in step.states:
            return NOOP if found.state == "running" else stale(f"{step.target} on {node.name} is {found.state}")
        others = intruders(self.plan, step, await node.observer.observe(), self.run_id)
        if others:
            return stale(told(node.name, others))
        await node.containers.start(found.id)
        return APPLIED

    async def _ready(self, step: Step, node: FencedNode, on_progress: OnProgress) -> Outcome:
        """Wait until the rank's port accepts a connection, or its container ends."""
        gang = self._gang(step)
        rank = gang.ranks[step.rank or 0]
        port = rank.ready.port if rank.ready else 0
        deadline_s = asyncio.get_running_loop().time() + gang.gate.boot_s
        while not await node.engines.accepts(rank.address, port, POLL_S * 5):
            found = await _look(step, node)
            if found is None or found.state != "running":
                watch = GangWatch(self.fleet, gang, self._refs(step))
                down = f"rank {rank.index} on {node.name} {describe_end(found)}"
                return await explained(watch, Verdict(Health.DEGRADED, "ranks", down, rank.index))
            if asyncio.get_running_loop().time() >= deadline_s:
                return failed(
                    f"rank {rank.index} on {node.name} does not listen on port {port} within {gang.gate.boot_s:g} s"
                )
            on_progress(Progress(0, None, f"port {port} does not listen yet"))
            await asyncio.sleep(POLL_S)
        return APPLIED

    async def _room(self, step: Step, node: FencedNode, on_progress: OnProgress) -> Outcome:
        """Wait until the memory the rank needs is really free, the machine's and the GPU's."""
        rank = self._gang(step).ranks[step.rank or 0]
        deadline_s = asyncio.get_running_loop().time() + ROOM_S
        while True:
            facts = await node.observer.observe()
            lacking = shortage(rank, facts)
            if not lacking:
                return NOOP
            held = holders(facts)
            if asyncio.get_running_loop().time() >= deadline_s:
                told = f"the memory of {node.name} is not free after {ROOM_S:g} s: {lacking}"
                return failed(f"{told}; held by {held}" if held else told)
            on_progress(Progress(0, None, f"{lacking}; held by {held}" if held else lacking))
            await asyncio.sleep(POLL_S)

    async def _verify(self, step: Step, on_progress: OnProgress) -> Outcome:
        gang = self._gang(step)
        refs = self._refs(step)
        watch = GangWatch(self.fleet, gang, refs)
        verdict = await wait_until_proved(watch, lambda text: on_progress(Progress(0, None, text)), self.usual(gang))
        if verdict.health is Health.HEALTHY:
            outcome = await self._alone(step, gang)
            is_told = outcome is APPLIED and gang.gate.performance is not None
            detail = verdict.detail if is_told else outcome.detail
            return replace(outcome, detail=detail, phases=watch.boot.until(now_s()))
        return await explained(watch, verdict)

    async def _alone(self, step: Step, gang: Gang) -> Outcome:
        """The end of a gate that has passed: nobody else may have started meanwhile."""
        for name in gang.nodes:
            try:
                node = await self.fleet.connect(name, CONNECT_S)
                others = intruders(self.plan, step, await node.observer.observe(), self.run_id)
            except NodeError as error:
                return (
                    Outcome(Status.UNREACHABLE, told_error(error)) if error.is_transport else failed(told_error(error))
                )
            if others:
                return failed(told(name, others))
        return APPLIED

    def _refs(self, step: Step) -> dict[int, str]:
        """The container of each rank: by what the plan confirms after this gate."""
        ways_back = [item for way in self.plan.rollbacks for item in way.steps]
        steps = ways_back if step.phase is Phase.ROLLBACK else self.plan.steps
        confirms = (item for item in steps if item.gang == step.gang and item.op is Op.CONFIRM)
        return {item.rank or 0: item.container_id or item.target for item in confirms}

    def _gang(self, step: Step) -> Gang:
        """The gang a step is about, of steps that are only planned where it is known."""
        gang = self.plan.gang_of(step)
        if gang is None:
            raise KeyError(step.gang)
        return gang


def _say_hidden(on_progress: OnProgress, hide: Callable[[str], str], news: Progress) -> None:
    on_progress(replace(news, doing=readable(hide(news.doing))))


def _is_planned(found: Container, step: Step, gang: Gang | None) -> bool:
    """What returns is known by its id; what is new, by what it runs."""
    if is_return(step) or gang is None:
        return found.id == step.container_id
    return found.owner is not None and found.owner.fingerprint == gang.ranks[step.rank or 0].fingerprint


async def _look(step: Step, node: FencedNode) -> Container | None:
    return await node.containers.inspect(step.container_id or step.target)


async def _unprove(step: Step, node: FencedNode) -> Outcome:
    found = await _look(step, node)
    if found is None:
        return stale(f"{step.target} is gone from {node.name}")
    if found.name == unproved_name(step.target):
        return NOOP
    if found.state not in step.states:
        return stale(f"{step.target} on {node.name} is {found.state}")
    await node.containers.rename(found.id, unproved_name(step.target))
    return APPLIED


async def _confirm(step: Step, node: FencedNode) -> Outcome:
    found = await _look(step, node) or await node.containers.inspect(proved_name(step.target))
    if found is None or found.state not in step.states:
        return failed(f"{step.target} on {node.name} {describe_end(found)}")
    if found.name == proved_name(step.target):
        return NOOP
    await node.containers.rename(found.id, proved_name(step.target))
    return APPLIED


async def _remove(step: Step, node: FencedNode) -> Outcome:
    found = await _look(step, node)
    if found is None:
        return NOOP
    if found.preflight is not None and found.id == step.container_id:  # what a killed controller has left of one
        await removed(node, found)
        return APPLIED
    if found.owner is None or found.state not in step.states:
        return stale(f"{step.target} on {node.name} is {found.state}")
    await node.containers.remove(found.id)
    return APPLIED
