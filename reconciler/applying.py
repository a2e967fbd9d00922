"""One run of a plan: take the leases, settle what earlier runs left open, carry out, judge, record, let go."""

import asyncio
import time
import uuid
from collections.abc import Collection, Coroutine, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import state
from reconciler import history, person
from reconciler.applied import Applied
from reconciler.core import estimates
from reconciler.core.canonical import canonical_json
from reconciler.core.durations import measured
from reconciler.core.events import Event, LeaseAwaited, RunEnded, RunStarted
from reconciler.core.leases import Claim
from reconciler.core.machine import TURNING_PHASES, Machine, Status
from reconciler.core.model_sync import make_model_sync_plan
from reconciler.core.observed import Observed
from reconciler.core.outcome import Exit, apply_exit, cut_short_exit, is_as_before, is_fault_of_version
from reconciler.core.plan import Op, Plan
from reconciler.core.remarks import digests
from reconciler.core.summary import applied_before, apply_summary, cut_short_summary, unsettled_summary
from reconciler.core.sync import make_sync_plan
from reconciler.core.withhold import withheld_summary
from reconciler.execution.leasing import LeaseKeeper
from reconciler.execution.runner import Failure, OnEvent, Runner
from reconciler.execution.secrets import Secrets
from reconciler.hooking import hooks_of
from reconciler.nodes.errors import LeaseHeldError
from reconciler.resume import settle

if TYPE_CHECKING:
    from reconciler.fleet import Fleet

T = TypeVar("T")

ROLLBACK = "rollback"
"""The command whose revisions are recorded as ways back."""


@dataclass(frozen=True)
class Application:
    """A plan to be carried out on a fleet. `wait_s`: how long to wait for leases that others hold; None: for ever."""

    fleet: "Fleet"
    plan: Plan
    on_event: OnEvent
    stop: asyncio.Event
    secrets: Secrets
    command: str = "apply"
    saved_id: str | None = None
    wait_s: float | None = 0.0
    run_id: str | None = None

    async def run(self) -> Applied:
        """Carry it out. Raises `state.StateError` before the first effect when the journal cannot be written."""
        store = self.fleet.open_state()
        run = self._run()
        claim = Claim(person.name(), f"{self.command} of plan {self.plan.id}", run.id)
        keeper = LeaseKeeper(self.fleet.nodes, claim)
        try:
            store.check_writable()
            held_up = await self._taken(keeper)
            applied = held_up or await self._recorded(store, run, keeper)
            self.on_event(ended(applied))
            return applied
        finally:
            try:
                await keeper.release()
            finally:
                store.close()

    def _run(self) -> state.Run:
        return state.Run(
            id=self.run_id or uuid.uuid4().hex[:12],
            command=self.command,
            fleet=self.plan.fleet,
            spec_fingerprint=self.plan.spec,
            plan_id=self.plan.id,
            commit=self.plan.commit,
            user=person.user(),
            host=person.host(),
            started_at=time.time(),
        )

    async def _taken(self, keeper: LeaseKeeper) -> Applied | None:
        """Take the leases of all nodes that the plan may change; how it ended when they are not to be had.

        A node that cannot be reached is left out: its steps fail by themselves, and nothing is cut before them.
        """
        steps = (*self.plan.steps, *(step for way in self.plan.rollbacks for step in way.steps))
        nodes = {step.node for step in steps if step.node is not None}
        try:
            taken = await self._unless_stopped(
                keeper.take(nodes, self.wait_s, lambda holder, node: self.on_event(LeaseAwaited(node, holder)))
            )
        except LeaseHeldError as error:
            return Applied("", Exit.LEASE_HELD, f"{error.message}; nothing was changed\n{error.hint}", (), {})
        if taken is None:
            return Applied("", Exit.INTERRUPTED, "interrupted before anything was changed", (), {})
        return await self._outdated(nodes) if keeper.waited else None

    async def _outdated(self, nodes: Collection[str]) -> Applied | None:
        """How it ended when whoever was waited for has changed what the plan saw."""
        observed = await self._unless_stopped(self.fleet.observe())
        if observed is None:
            return Applied("", Exit.INTERRUPTED, "interrupted before anything was changed", (), {})
        before, now = dict(self.plan.observed), dict(digests(observed))
        changed = sorted(node for node in nodes if before.get(node) != now.get(node))
        if not changed:
            return None
        what = f"{', '.join(changed)} changed while it was waited for; nothing was changed by this run"
        return Applied("", Exit.REFUSED, f"{what}\nplan again: `fleet {self.command}`", (), {})

    async def _recorded(self, store: state.Store, run: state.Run, keeper: LeaseKeeper) -> Applied:
        nodes = self.fleet.nodes
        usual = partial(estimates.History(store.measures(history.BOOTS)).phases, classes=self.fleet.node_classes)
        await self._unless_stopped(settle(store, nodes, self.fleet.desired, time.time()))
        store.begin_run(run)
        earlier = store.claim_plan(self.saved_id, run.id, run.started_at) if self.saved_id else None
        if earlier is not None:
            store.end_run(run.id, int(Exit.REFUSED), time.time())
            return Applied(run.id, Exit.REFUSED, applied_before(earlier), (), {})
        before = nodes.sent_bytes
        self.on_event(RunStarted(run.id, self.plan))
        told = (self.on_event, self.stop)
        hooks = hooks_of(self.fleet.spec)
        runner = Runner(self.plan, nodes, store, run.id, *told, self.secrets, keeper, usual, hooks)
        machine = await runner.run()
        return replace(await self._concluded(store, runner, machine), sent_bytes=nodes.sent_bytes - before)

    async def _concluded(self, store: state.Store, runner: Runner, machine: Machine) -> Applied:
        """The end of a run, judged and recorded. What was done stays done where it cannot be recorded."""
        failures = tuple(runner.failures)
        if runner.lost is not None:
            summary = cut_short_summary(machine, runner.lost.summary, runner.lost.hint)
            return Applied(runner.run_id, cut_short_exit(machine), summary, failures, dict(machine.status))
        applied = await self._judge(runner.run_id, machine, failures)
        try:
            self._measure(store, runner)
            self._record(store, runner, machine)
            if not any(entry.run_id == runner.run_id for entry in store.open_entries()):
                store.end_run(runner.run_id, int(applied.exit), time.time())
        except state.StateError as error:
            return replace(applied, summary=f"{applied.summary}; its end is not recorded: {error.summary}")
        return applied

    async def _judge(self, run_id: str, machine: Machine, failures: tuple[Failure, ...]) -> Applied:
        """The exit code; of an apply that went well only when the nodes, looked at once more, are what was wanted."""
        code = apply_exit(machine)
        applied = Applied(run_id, code, apply_summary(machine, code, self._again()), failures, dict(machine.status))
        if code not in {Exit.OK, Exit.UNREACHABLE}:
            return applied
        touched = frozenset(node for gang in self.plan.gangs for node in gang.nodes)
        observed = await self._unless_stopped(self.fleet.observe(nodes=touched if self.plan.is_sync else None))
        if observed is None:
            summary = f"{applied.summary}; interrupted before it was looked at once more"
            return replace(applied, exit=Exit.INTERRUPTED, summary=summary)
        again = self._planned_again(observed)
        changed = {change.gang for change in machine.plan.changes}
        unsettled = [change for change in again.changes if change.gang in changed]
        if not unsettled:
            return _but_withheld(applied, machine.plan)
        return replace(applied, exit=Exit.NEEDS_A_PERSON, summary=unsettled_summary(unsettled), unsettled=again)

    def _again(self) -> str:
        """Resuming would carry out what the spec says: away from where a rollback is going."""
        return "the same `fleet rollback`" if self.command == ROLLBACK else ""

    def _planned_again(self, observed: Observed) -> Plan:
        """The plan that has to be empty now: after one that only brought images, images are all that counts."""
        if self.plan.is_model_sync:
            models = frozenset(step.target for step in self.plan.steps)
            return make_model_sync_plan(self.fleet.desired, observed, models)
        if self.plan.is_sync:
            return make_sync_plan(self.fleet.desired, observed)
        return self.fleet.plan(observed, allow_empty=True)

    def _measure(self, store: state.Store, runner: Runner) -> None:
        """How long it all took, for the next time."""
        now = time.time()
        found = measured(self.plan, runner.ended, self.fleet.node_classes)
        store.measure(tuple(state.Measure(**vars(item), run_id=runner.run_id, at=now) for item in found))

    def _record(self, store: state.Store, runner: Runner, machine: Machine) -> None:
        """What was proved is a revision, and no version of it is tried in vain any more; what failed is put aside.

        Not where a node was booted meanwhile: that is no fault of the version. Nor where the way back was interrupted:
        the next apply tries it again, since it is what fails that brings back what ran before.
        """
        for revision in _proved(store, runner.run_id, machine, ROLLBACK if self.command == ROLLBACK else "apply"):
            store.confirm(revision)
            store.lift(revision.gang, machine.plan.gang(revision.gang).fingerprint)
        for failure in runner.failures:
            is_midway = machine.is_interrupted and not is_as_before(machine, failure.step)
            if is_fault_of_version(failure.step, failure.status) and not is_midway:
                gang = machine.plan.gang(failure.step.gang)
                if runner.leases.rebooted.isdisjoint(gang.nodes):
                    where = f"{failure.step.op} on {failure.step.node}: " if failure.step.node else ""
                    cause = f"{where}{failure.detail}"
                    aside = state.Quarantine(gang.address, gang.fingerprint, cause, runner.run_id, time.time())
                    store.quarantine(aside)

    async def _unless_stopped(self, work: Coroutine[Any, Any, T]) -> T | None:
        """What the work returns; None when it was interrupted before that, and broken off."""
        task, stopping = asyncio.ensure_future(work), asyncio.ensure_future(self.stop.wait())
        try:
            await asyncio.wait([task, stopping], return_when=asyncio.FIRST_COMPLETED)
            return await task if task.done() else None
        finally:
            stopping.cancel()
            task.cancel()
            await asyncio.wait([task, stopping], timeout=LETTING_GO_S)


def ended(applied: Applied) -> RunEnded:
    """The last event of every run, also of one that was refused before it began."""
    return RunEnded(applied.run_id, int(applied.exit), applied.summary)


def unbreakable(on_event: OnEvent) -> OnEvent:
    """The listener, of which no error comes back: that would leave a lane half booted.

    What it raises is told as of any other callback: by the handler of the event loop, which logs it.
    """

    def tell(event: Event) -> None:
        try:
            on_event(event)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is of the caller's
            told = {"message": f"a listener failed at an event ({event.KIND})", "exception": error}
            asyncio.get_running_loop().call_exception_handler(told)

    return tell


LETTING_GO_S = 1.0
"""How long what is broken off gets to let go."""


def _proved(store: state.Store, run_id: str, machine: Machine, how: str) -> Iterator[state.Revision]:
    """Each gang that was proved and stayed, with how long its boot took."""
    spans = history.boot_spans(store, run_id)
    for step in machine.with_status(Status.APPLIED):
        if step.op is Op.VERIFY and step.gang in spans and step.phase in TURNING_PHASES:
            gang = machine.plan.gang(step.gang)
            number = max((item.revision or 1 for item in machine.plan.steps if item.gang == step.gang), default=1)
            began, ended = spans[step.gang]
            text = canonical_json(gang)
            yield state.Revision(step.gang, number, gang.fingerprint, run_id, ended, ended - began, text, how)


def _but_withheld(applied: Applied, plan: Plan) -> Applied:
    """What went well is not all that was planned when some of it is withheld."""
    if not plan.withheld:
        return applied
    return replace(applied, exit=Exit.REFUSED, summary=f"{applied.summary}\n{withheld_summary(plan)}")
