"""Interprets the apply state machine with asyncio: runs what it says, journals around each effect, reports events."""

import asyncio
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import state
from reconciler.core.durations import Ended
from reconciler.core.events import Event, Interrupted, StepEnded, StepProgress, StepStarted
from reconciler.core.hooks import Fault, Hook, group, is_cut
from reconciler.core.machine import BAD, Machine, Status
from reconciler.core.plan import Op, Plan, Step
from reconciler.execution.effects import Effects, operation_of
from reconciler.execution.hooks import HookCalls
from reconciler.execution.journal import Journal
from reconciler.execution.leasing import LeaseKeeper
from reconciler.execution.outcomes import Outcome, failed
from reconciler.execution.proving import Usual
from reconciler.execution.secrets import Secrets
from reconciler.nodes.protocols import Fleet, Progress

LETTING_GO_S = 1.5
"""After an interrupt: the time short effects get to end by themselves."""

CANCELLED_S = 0.5
"""The time that what is cancelled in the end gets: the release of leases comes after it, all within five seconds."""

WAITS = frozenset({Op.PULL, Op.FETCH, Op.PREFLIGHT, Op.ROOM, Op.READY, Op.VERIFY, Op.STOP})
"""What may take long. An interrupt ends these at once; looking settles what became of them."""

CALLED_OFF = Outcome(Status.SKIPPED, "called off: its gang goes back to what ran before")

OnEvent = Callable[[Event], None]


@dataclass(frozen=True)
class Failure:
    """A step that ended badly. `cause`: id of an entry of `core/causes`, when one is known."""

    step: Step
    status: Status
    detail: str
    logs: tuple[str, ...]
    cause: str = ""


@dataclass
class Runner:
    """One apply of one plan. `stop` set means: no new steps, let go, say what was waiting.

    `lost` is set when the journal could not be written any more: nothing was begun from then on. `ended`: every step
    that came to an end, with its times. `usual`: how long each phase of a gang's boot usually takes, where it is known.
    """

    plan: Plan
    fleet: Fleet
    store: state.Store
    run_id: str
    on_event: OnEvent
    stop: asyncio.Event
    secrets: Secrets
    leases: LeaseKeeper
    usual: Usual
    hooks: tuple[Hook, ...] = ()
    failures: list[Failure] = field(default_factory=list)
    ended: list[Ended] = field(default_factory=list)
    lost: state.StateError | None = None
    _journal: Journal = field(init=False)
    _hooks: HookCalls = field(init=False)
    _begun: set[str] = field(default_factory=set)
    _called_off: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._journal = Journal(self.store, self.run_id)
        told = (self.secrets, self.run_id, self.on_event)
        self._hooks = HookCalls(self.plan, self.hooks, self.fleet.hooks, *told)

    async def run(self) -> Machine:
        """Carry out the plan; the machine in its end state. Every effect is journaled before and after."""
        machine = Machine(self.plan)
        effects = Effects(self.plan, self.fleet, self.run_id, self.secrets, self.leases, self.usual)
        tasks: dict[asyncio.Task[Outcome], Step] = {}
        stopping = asyncio.ensure_future(self.stop.wait())
        try:
            self._launch(effects, machine.begin(), tasks)
            while tasks:
                await asyncio.wait([*tasks, stopping], return_when=asyncio.FIRST_COMPLETED)
                if self.stop.is_set():
                    await self._let_go(machine, tasks)
                    break
                for task in [item for item in tasks if item.done()]:
                    step, outcome = tasks[task], self._settle(task, tasks)
                    self._launch(effects, machine.ended(step.id, outcome.status, untouched=outcome.untouched), tasks)
                    self._hooks.after(step, machine)
                self._call_off(machine.overtaken, tasks)
            await self._hooks.end(machine, [_fault(item) for item in self.failures], self.stop)
        except state.StateError as error:
            self.lost = error
            machine.interrupt()
        finally:
            await _cancel([stopping, *tasks, *self._hooks.running])
        return machine

    def _launch(self, effects: Effects, steps: tuple[Step, ...], tasks: dict[asyncio.Task[Outcome], Step]) -> None:
        for step in steps:
            tasks[asyncio.create_task(self._step(effects, step), name=step.id)] = step

    def _call_off(self, steps: tuple[Step, ...], tasks: dict[asyncio.Task[Outcome], Step]) -> None:
        """End waits that nobody needs any more: their group turns back."""
        for task in [task for task, step in tasks.items() if step in steps and step.id not in self._called_off]:
            self._called_off.add(tasks[task].id)
            if tasks[task].id in self._begun:  # one whose intent is being written finds out by itself
                task.cancel()

    def _settle(self, task: asyncio.Task[Outcome], tasks: dict[asyncio.Task[Outcome], Step]) -> Outcome:
        step = tasks.pop(task)
        outcome = task.result()
        if outcome.status in BAD:
            self.failures.append(Failure(step, outcome.status, outcome.detail, outcome.logs, outcome.cause))
        return outcome

    async def _step(self, effects: Effects, step: Step) -> Outcome:
        """Intent, effect, outcome. A cancelled step keeps its intent open: the next run settles it by looking."""
        started_s = asyncio.get_running_loop().time()
        operation = operation_of(self.run_id, step)
        intent = state.Intent(step.id, step.gang, step.node, step.op, step.target, operation, time.time())
        sequence = await self._journal.intend(intent)
        self.on_event(StepStarted(step))
        outcome = await self._unless_called_off(effects, step)
        self.store.outcome(self.run_id, sequence, outcome.status, outcome.detail, time.time())
        ended = Ended(step, outcome.status, started_s, asyncio.get_running_loop().time(), outcome.phases)
        self.ended.append(ended)
        told = (outcome.logs, outcome.cause, outcome.phases)
        self.on_event(StepEnded(step, outcome.status, outcome.detail, ended.seconds, *told))
        return outcome

    async def _unless_called_off(self, effects: Effects, step: Step) -> Outcome:
        """What became of the step; one that was called off is skipped, and its entry in the journal is closed."""
        self._begun.add(step.id)
        if step.id in self._called_off:
            return CALLED_OFF
        try:
            return await self._carried_out(effects, step)
        except asyncio.CancelledError:
            if step.id not in self._called_off or self.stop.is_set():
                raise
            return CALLED_OFF

    async def _carried_out(self, effects: Effects, step: Step) -> Outcome:
        """What no handler foresaw is a failed step: raised, it would end the run with a gang half started."""
        try:
            if is_cut(step) and (why := await self._hooks.before_cut(group(self.plan, step.gang))):
                return replace(failed(why), untouched=True)
            outcome = await effects.carry_out(step, lambda news: self.on_event(_progress(step, news)))
        except Exception as error:  # noqa: BLE001 - see above
            hide = effects.hider(step)
            outcome = failed(
                hide(f"internal error, please report it: {type(error).__name__}: {error}"),
                tuple(hide(traceback.format_exc()).splitlines()),
            )
        return replace(outcome, detail=outcome.detail.encode(errors="backslashreplace").decode())

    async def _let_go(self, machine: Machine, tasks: dict[asyncio.Task[Outcome], Step]) -> None:
        machine.interrupt()
        self.on_event(Interrupted(tuple(tasks.values())))
        waits = [task for task, step in tasks.items() if step.op in WAITS]
        for task in waits:
            task.cancel()
        await asyncio.wait(tasks, timeout=LETTING_GO_S)
        for task in [item for item in tasks if item.done() and not item.cancelled()]:
            step, outcome = tasks[task], self._settle(task, tasks)
            machine.ended(step.id, outcome.status, untouched=outcome.untouched)
        for step in tasks.values():
            machine.ended(step.id, Status.SKIPPED)


def _fault(failure: Failure) -> tuple[str, Fault]:
    return failure.step.gang, Fault(failure.step.id, failure.status, failure.detail, failure.cause)


def _progress(step: Step, news: Progress) -> StepProgress:
    has_bytes = news.done_bytes or news.total_bytes
    return StepProgress(step, news.doing, news.done_bytes if has_bytes else None, news.total_bytes)


async def _cancel(tasks: list[asyncio.Task[bool] | asyncio.Task[Outcome] | asyncio.Task[str]]) -> None:
    """Cancel and give them a moment; a task that does not end in time is left behind."""
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks, timeout=CANCELLED_S)
