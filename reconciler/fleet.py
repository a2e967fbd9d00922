"""The Python API: one fleet, loaded from its spec. The command line uses nothing else.

fleet = Fleet.load(Path("fleet.yaml"))
async with fleet:
    plan = fleet.plan(await fleet.observe())
    result = await fleet.apply(plan)
"""

import asyncio
import time
import uuid
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Self

import specs
import state
from reconciler import history, person
from reconciler.core.desired import Desired
from reconciler.core.drift import Finding, findings
from reconciler.core.events import RunEnded, RunStarted
from reconciler.core.gate import Verdict
from reconciler.core.lock import insist_on_agreement
from reconciler.core.machine import Machine, Status
from reconciler.core.needs import images_lacking, paths_to_boot
from reconciler.core.observed import Observed
from reconciler.core.outcome import Exit, apply_exit, cut_short_exit
from reconciler.core.plan import Op, Plan
from reconciler.core.planner import PlanOptions, make_plan
from reconciler.core.secret_notes import marked_references
from reconciler.core.status import FleetStatus, can_be_asked, lane_status, running_refs, unwanted, views, with_failure
from reconciler.core.summary import applied_before, apply_summary, cut_short_summary, unsettled_summary
from reconciler.core.sync import make_sync_plan
from reconciler.core.withhold import going, withheld_summary
from reconciler.engines import RULES, desired_fleet
from reconciler.execution.gate import GangWatch, judged
from reconciler.execution.runner import Failure, OnEvent, Runner
from reconciler.execution.secrets import Secrets
from reconciler.images import lockfile
from reconciler.nodes import protocols
from reconciler.nodes.observation import observe_all, with_inventory
from reconciler.version import TOOL

OBSERVE_S = 10.0
"""Default deadline of reading one node."""

STATE_FOLDER = ".fleet"

OpenStore = Callable[[Path], state.Store]
Connect = Callable[[specs.Spec], protocols.Fleet]


@dataclass(frozen=True)
class Applied:
    """How an apply ended. `unsettled` is the plan that should have been empty afterwards, when it was not.

    `sent_bytes`: bytes of images that left the controller for it.
    """

    run_id: str
    exit: Exit
    summary: str
    failures: tuple[Failure, ...]
    status: dict[str, Status]
    unsettled: Plan | None = None
    sent_bytes: int = 0


def over_ssh(spec: specs.Spec) -> protocols.Fleet:
    """The real nodes of a spec."""
    from reconciler.nodes.ssh_fleet import SshFleet  # noqa: PLC0415 - only commands that touch nodes pay for it

    return SshFleet.from_spec(spec, lockfile.read(spec.root))


class Fleet:
    """One fleet: its spec, what it desires, and the way to its nodes."""

    def __init__(
        self, spec: specs.Spec, desired: Desired, nodes: protocols.Fleet, open_store: OpenStore = state.open_store
    ) -> None:
        self.spec = spec
        self.desired = desired
        self.nodes = nodes
        self.folder = spec.root / STATE_FOLDER
        self._open_store = open_store
        self._secrets = Secrets()

    @classmethod
    def load(cls, path: Path, connect: Connect = over_ssh, open_store: OpenStore = state.open_store) -> Self:
        """Read and check the spec and its lock; nothing is contacted yet. Raises `specs.SpecErrors` and `LockError`.

        `connect` and `open_store` say what the nodes are and where the journal is kept: over SSH, and in a folder
        `.fleet` beside the spec.
        """
        spec = specs.load(path, RULES)
        lock = lockfile.read(spec.root)
        desired = desired_fleet(spec, lock)
        insist_on_agreement(lock, desired)
        return cls(spec, desired, connect(spec), open_store)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.nodes.close()

    def without(self, lanes: frozenset[str]) -> "Fleet":
        """The same fleet with these lanes placed nowhere; it shares the sessions with the nodes."""
        return Fleet(self.spec, self.desired.without(lanes), self.nodes, self._open_store)

    def open_state(self) -> state.Store:
        """What was recorded of the fleet, for reading and writing: to be closed. Raises `state.StateError`."""
        return self._open_store(self.folder)

    async def observe(self, deadline_s: float = OBSERVE_S) -> Observed:
        """Read all nodes at once, with a deadline on each. An unreachable node is a fact, never an exception."""
        states = await observe_all(self.nodes, [node.name for node in self.desired.nodes], deadline_s)
        paths = paths_to_boot(self.desired, states)
        if paths:
            states |= await observe_all(self.nodes, paths, deadline_s, paths)
        lacking = images_lacking(self.desired, states)
        states |= await with_inventory(self.nodes, states, {node for node, _ in lacking}, deadline_s)
        pins = {pin.digest: pin for _, pin in lacking}
        told = await asyncio.gather(*(self.nodes.sources.describe(pin) for pin in pins.values()))
        secrets = await self._secrets.seen(lambda key: marked_references(self.desired, states, key))
        return Observed(states, dict(zip(pins, told, strict=True)), secrets)

    def plan(self, observed: Observed, *, commit: str | None = None, allow_empty: bool = False) -> Plan:
        """What `apply` would do. Pure."""
        return make_plan(self.desired, observed, PlanOptions(TOOL, commit, allow_empty))

    async def apply(
        self,
        plan: Plan,
        on_event: OnEvent = lambda event: None,
        stop: asyncio.Event | None = None,
        command: str = "apply",
        saved_id: str | None = None,
    ) -> Applied:
        """Carry out the plan, then observe and plan again: that plan has to be empty.

        A plan with refusals is not touched, nor is what is withheld of one. `saved_id`: of a saved plan, which is
        carried out once. Raises `state.StateError` before the first effect when the journal cannot be written. Set
        `stop` to interrupt.
        """
        plan = going(plan)
        if plan.refusals or (plan.withheld and plan.is_empty):
            why = f"refused: {plan.refusals[0].summary}" if plan.refusals else withheld_summary(plan)
            return Applied("", Exit.REFUSED, why, (), {})
        store = self.open_state()
        sent_bytes = self.nodes.sent_bytes
        try:
            store.check_writable()
            run = self._run_of(plan, command)
            store.begin_run(run)
            earlier = store.claim_plan(saved_id, run.id, run.started_at) if saved_id else None
            if earlier is not None:
                store.end_run(run.id, int(Exit.REFUSED), time.time())
                return Applied(run.id, Exit.REFUSED, applied_before(earlier), (), {})
            on_event(RunStarted(run.id, plan))
            runner = Runner(plan, self.nodes, store, run.id, on_event, stop or asyncio.Event(), self._secrets)
            machine = await runner.run()
            applied = await self._concluded(store, runner, machine)
            applied = replace(applied, sent_bytes=self.nodes.sent_bytes - sent_bytes)
        finally:
            store.close()
        on_event(RunEnded(run.id, int(applied.exit), applied.summary))
        return applied

    async def _concluded(self, store: state.Store, runner: Runner, machine: Machine) -> Applied:
        """The end of a run, judged and recorded. What was done stays done where it cannot be recorded."""
        failures = tuple(runner.failures)
        if runner.lost is not None:
            summary = cut_short_summary(machine, runner.lost.summary, runner.lost.hint)
            return Applied(runner.run_id, cut_short_exit(machine), summary, failures, dict(machine.status))
        applied = await self._judge(runner.run_id, machine, failures)
        try:
            self._record_revisions(store, runner.run_id, machine)
            if not any(entry.run_id == runner.run_id for entry in store.open_entries()):
                store.end_run(runner.run_id, int(applied.exit), time.time())
        except state.StateError as error:
            return replace(applied, summary=f"{applied.summary}; its end is not recorded: {error.summary}")
        return applied

    def _run_of(self, plan: Plan, command: str) -> state.Run:
        return state.Run(
            id=uuid.uuid4().hex[:12],
            command=command,
            fleet=plan.fleet,
            spec_fingerprint=plan.spec,
            plan_id=plan.id,
            commit=plan.commit,
            user=person.user(),
            host=person.host(),
            started_at=time.time(),
        )

    async def _judge(self, run_id: str, machine: Machine, failures: tuple[Failure, ...]) -> Applied:
        code = apply_exit(machine)
        applied = Applied(run_id, code, apply_summary(machine, code), failures, dict(machine.status))
        if code not in {Exit.OK, Exit.UNREACHABLE}:
            return applied
        again = self._planned_again(machine.plan, await self.observe())
        touched = {change.gang for change in machine.plan.changes}
        unsettled = [change for change in again.changes if change.gang in touched]
        if not unsettled:
            return _but_withheld(applied, machine.plan)
        summary = unsettled_summary(unsettled)
        return replace(applied, exit=Exit.NEEDS_A_PERSON, summary=summary, unsettled=again)

    def _planned_again(self, done: Plan, observed: Observed) -> Plan:
        """The plan that has to be empty now: after one that only brought images, images are all that counts."""
        if done.is_sync:
            return make_sync_plan(self.desired, observed)
        return self.plan(observed, allow_empty=True)

    def _record_revisions(self, store: state.Store, run_id: str, machine: Machine) -> None:
        """Write down each gang that was proved, with how long its boot took."""
        spans = history.boot_spans(store, run_id)
        for step in machine.with_status(Status.APPLIED):
            if step.op is Op.VERIFY and step.gang in spans:
                gang = machine.plan.gang(step.gang)
                number = max((item.revision or 1 for item in machine.plan.steps if item.gang == step.gang), default=1)
                began, ended = spans[step.gang]
                head = gang.ranks[0].fingerprint
                store.confirm(state.Revision(step.gang, number, head, run_id, ended, ended - began))

    def boots(self, gang: str) -> tuple[float, ...]:
        """How long the last boots of the gang took, in seconds, newest first; empty when nothing is recorded.

        Raises `state.StateError` when the record is there and cannot be read.
        """
        return history.boots(self.folder, gang)

    def last_failures(self) -> dict[str, str]:
        """Why the newest recorded apply of a gang failed, for each gang of which it did.

        History for people: empty when nothing is recorded, or the record cannot be read.
        """
        try:
            return history.failures(self.folder)
        except state.StateError:
            return {}

    async def health(self, observed: Observed, *, probe: bool = False) -> dict[str, Verdict]:
        """What the head of every fully running gang says; with `probe`, its questions are asked too."""
        asked = [view for view in views(self.desired, observed) if can_be_asked(view)]
        watches = [GangWatch(self.nodes, view.gang, running_refs(view)) for view in asked]
        verdicts = await asyncio.gather(*(judged(watch, probe=probe) for watch in watches))
        return {watch.gang.address: verdict for watch, verdict in zip(watches, verdicts, strict=True)}

    async def status(self, observed: Observed, *, probe: bool = False) -> FleetStatus:
        """The fleet on its three axes."""
        health = await self.health(observed, probe=probe)
        failures = self.last_failures()
        lanes = tuple(
            with_failure(lane_status(view, health.get(view.gang.address)), failures)
            for view in views(self.desired, observed)
        )
        plan = self.plan(observed, allow_empty=True)
        return FleetStatus(self.desired.fleet, lanes, unwanted(self.desired, observed), plan.unknown, plan.foreign)

    async def drift(self, observed: Observed) -> tuple[Finding, ...]:
        """What differs from what is wanted. Changes nothing."""
        return findings(self.desired, observed, await self.health(observed))

    async def logs(self, node: str, container: str, tail: int, *, follow: bool) -> AsyncIterator[str]:
        """Log lines of one container: the last `tail`, and with `follow` each new one. Raises `NodeError`."""
        session = await self.nodes.connect(node, OBSERVE_S)
        if follow:
            async for line in session.containers.follow(container, tail):
                yield line
        else:
            for line in await session.containers.logs(container, tail):
                yield line


def _but_withheld(applied: Applied, plan: Plan) -> Applied:
    if not plan.withheld:
        return applied
    return replace(applied, exit=Exit.REFUSED, summary=f"{applied.summary}\n{withheld_summary(plan)}")
