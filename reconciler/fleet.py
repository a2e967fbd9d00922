"""The Python API: one fleet, loaded from its spec. The command line uses nothing else.

fleet = Fleet.load(Path("fleet.yaml"))
async with fleet:
    plan = fleet.plan(await fleet.observe())
    result = await fleet.apply(plan)
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

import specs
import state
from reconciler import history, plugins
from reconciler.applied import Applied
from reconciler.core.checks import Judge
from reconciler.core.desired import Desired, Gang
from reconciler.core.doctor import Diagnosis, examine
from reconciler.core.drift import Report
from reconciler.core.durations import node_classes
from reconciler.core.estimates import NOTHING, Estimates, estimates
from reconciler.core.gate import Verdict
from reconciler.core.lock import insist_on_agreement
from reconciler.core.model_sources import models_elsewhere
from reconciler.core.needs import images_lacking, models_running, models_to_boot, paths_to_boot
from reconciler.core.observed import NodeFacts, Observed, Unknown
from reconciler.core.outcome import Exit
from reconciler.core.plan import Plan
from reconciler.core.planner import PlanOptions, make_plan
from reconciler.core.secret_notes import marked_references
from reconciler.core.status import (
    FleetStatus,
)
from reconciler.core.withhold import going, refused_summary, withheld_summary
from reconciler.engines import RULES, desired_fleet
from reconciler.execution.secrets import Secrets
from reconciler.images import lockfile
from reconciler.nodes import protocols
from reconciler.nodes.absent import without_absent
from reconciler.nodes.observation import observe_all, with_inventory, with_models
from reconciler.threads import in_thread
from reconciler.version import TOOL

if TYPE_CHECKING:
    from reconciler.execution.runner import OnEvent

__all__ = ["Applied", "Fleet", "over_ssh"]

OBSERVE_S = 10.0
"""Default deadline of reading one node."""

OpenStore = Callable[[state.Location], state.Store]
Connect = Callable[[specs.Spec], protocols.Fleet]


def over_ssh(spec: specs.Spec) -> protocols.Fleet:
    """The real nodes of a spec."""
    from reconciler.nodes.ssh_fleet import SshFleet  # noqa: PLC0415 - only commands that touch nodes pay for it

    return SshFleet.from_spec(spec, lockfile.read(spec.root))


class Fleet:
    """One fleet: its spec, what it desires, and the way to its nodes.

    `node_classes`: what kind of machine each node was when it was last read (`core/durations.py`).
    """

    def __init__(
        self, spec: specs.Spec, desired: Desired, nodes: protocols.Fleet, open_store: OpenStore = state.open_store
    ) -> None:
        self.spec = spec
        self.desired = desired
        self.nodes = nodes
        self.folder = history.location(spec)
        self._open_store = open_store
        self.node_classes: dict[str, str] = {}
        self._secrets = Secrets()

    @classmethod
    def load(cls, path: Path, connect: Connect = over_ssh, open_store: OpenStore = state.open_store) -> Self:
        """Read and check the spec and its lock; nothing is contacted yet. Raises `specs.SpecErrors`, `LockError`,
        and `state.StateError` for a place of the state that cannot be one.

        `connect` and `open_store` say what the nodes are and how the journal is kept: over SSH, and where the variable
        FLEET_STATE says, or the spec, or else in a folder `.fleet` beside the spec.
        """
        spec = specs.load(path, RULES)
        lock = lockfile.read(spec.root)
        desired = desired_fleet(spec, lock)
        insist_on_agreement(lock, desired)
        return cls(spec, desired, without_absent(connect(spec), spec, _today()), open_store)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.nodes.close()

    def without(self, lanes: frozenset[str]) -> "Fleet":
        """The same fleet with these lanes placed nowhere; it shares the sessions with the nodes."""
        return self._with(self.desired.without(lanes))

    def wanting(self, gang: Gang) -> "Fleet":
        """The same fleet with this version of a placed gang; it shares the sessions with the nodes."""
        return self._with(self.desired.wanting(gang))

    def for_images(self) -> "Fleet":
        """The same fleet, which looks at no model; it shares the sessions with the nodes."""
        return self._with(self.desired.without_models())

    def _with(self, desired: Desired) -> "Fleet":
        other = Fleet(self.spec, desired, self.nodes, self._open_store)
        other.node_classes = self.node_classes
        return other

    def open_state(self) -> state.Store:
        """What was recorded of the fleet, for reading and writing: to be closed. Raises `state.StateError`."""
        return self._open_store(self.folder)

    async def observe(
        self,
        deadline_s: float = OBSERVE_S,
        nodes: Collection[str] | None = None,
        so_far: Callable[[Observed], object] = lambda seen: None,
    ) -> Observed:
        """Read all nodes (or these) at once, with a deadline on each. An unreachable node is a fact, no exception.

        `so_far` is called once each node has been heard, or not, before it is asked for more: for who may give up.
        """
        names = [node.name for node in self.desired.nodes if nodes is None or node.name in nodes]
        states = await observe_all(self.nodes, names, deadline_s)
        so_far(Observed(dict(states), {}))
        paths = paths_to_boot(self.desired, states)
        if paths:
            states |= await observe_all(self.nodes, paths, deadline_s, paths)
        states |= await self._models(states, deadline_s)
        lacking = images_lacking(self.desired, states)
        states |= await with_inventory(self.nodes, states, {node for node, _ in lacking}, deadline_s)
        pins = {pin.digest: pin for _, pin in lacking}
        told = await asyncio.gather(*(self.nodes.sources.describe(pin) for pin in pins.values()))
        secrets = await self._secrets.seen(lambda key: marked_references(self.desired, states, key))
        observed = Observed(states, dict(zip(pins, told, strict=True)), secrets)
        self.node_classes |= node_classes(observed)
        return observed

    async def _models(
        self, states: Mapping[str, NodeFacts | Unknown], deadline_s: float
    ) -> dict[str, NodeFacts | Unknown]:
        """The facts with the models that are to be read; where a node lacks one, also with who has it."""
        wanted = models_to_boot(self.desired, states)
        seen = {**states, **await with_models(self.nodes, states, wanted, deadline_s)} if wanted else {}
        elsewhere = models_elsewhere(self.desired, seen)
        return {**seen, **await with_models(self.nodes, seen, elsewhere, deadline_s)} if elsewhere else seen

    async def with_running_models(
        self, observed: Observed, deadline_s: float = OBSERVE_S
    ) -> tuple[Observed, tuple[Unknown, ...]]:
        """What was observed with the models of ranks that run, and the nodes whose storage did not tell of them in
        time: those stay as they were read."""
        wanted = models_running(self.desired, observed.nodes)
        seen = await with_models(self.nodes, observed.nodes, wanted, deadline_s) if wanted else {}
        known = {name: found for name, found in seen.items() if not isinstance(found, Unknown)}
        mute = tuple(found for _, found in sorted(seen.items()) if isinstance(found, Unknown))
        return replace(observed, nodes={**observed.nodes, **known}), mute

    def plan(self, observed: Observed, *, commit: str | None = None, allow_empty: bool = False) -> Plan:
        """What `apply` would do. Pure."""
        return make_plan(self.desired, observed, self.options(commit, allow_empty=allow_empty))

    def options(self, commit: str | None = None, *, allow_empty: bool = False) -> PlanOptions:
        """What plans of today are made with: the day that silences are held against, and the checks of packages."""
        return PlanOptions(TOOL, commit, allow_empty, _today(), plugins.checks())

    def judged(self, plan: Plan, now_s: float) -> Plan:
        """The plan with what policies say of it at `now_s` (seconds since 1970). It runs code of the spec's owner."""
        from reconciler.policing import with_objections  # noqa: PLC0415 - of a plan with nothing to do nobody is asked

        return with_objections(self.spec, plan, now_s)

    def doctor(self, observed: Observed) -> Diagnosis:
        """What every check says of the nodes and lanes. Changes nothing."""
        options = self.options()
        return examine(self.desired, observed, Judge.of(self.desired, options.today, options.checks))

    async def apply(
        self,
        plan: Plan,
        on_event: "OnEvent" = lambda event: None,
        stop: asyncio.Event | None = None,
        command: str = "apply",
        saved_id: str | None = None,
        wait_s: float | None = 0.0,
        run_id: str | None = None,
    ) -> Applied:
        """Carry out the plan, then observe and plan again: that plan has to be empty.

        A plan with refusals is not touched, nor one that a mandatory policy objects to (asked once more), nor what is
        withheld of one. `saved_id`: of a saved plan, which is carried out once. `wait_s`: how long to wait for leases
        that others hold; None: as long as it takes. `run_id`: what the run is called in the history, of 12 hex digits;
        default: a new one. Raises `state.StateError` before the first effect when the journal cannot be written, and
        `NodeError` when a node has no lease to give. Set `stop` to interrupt.
        """
        from reconciler.applying import Application, ended, unbreakable  # noqa: PLC0415 - most commands only look

        tell = unbreakable(on_event)
        plan = await in_thread(partial(self.judged, going(plan), time.time()))
        if plan.refusals or plan.forbidden or (plan.withheld and plan.is_empty):
            why = refused_summary(plan) or withheld_summary(plan)
            refused = Applied("", Exit.REFUSED, why, (), {})
            tell(ended(refused))
            return refused
        told = (tell, stop or asyncio.Event())
        return await Application(self, plan, *told, self._secrets, command, saved_id, wait_s, run_id).run()

    def boots(self, gang: str) -> tuple[float, ...]:
        """How long the last boots of the gang took, in seconds, newest first; empty when nothing is recorded.

        Raises `state.StateError` when the record is there and cannot be read.
        """
        return history.boots(self.folder, gang)

    def estimates(self, plan: Plan) -> Estimates:
        """What the plan is expected to take, by what was recorded of earlier times; `NOTHING` where nothing is.

        Raises `state.StateError` when the record is there and cannot be read.
        """
        took = history.measures(self.folder)
        return estimates(plan, self.node_classes, took) if took else NOTHING

    async def remembered(self, now_s: float) -> history.Remembered:
        """What a status of `now_s` (seconds since 1970) tells of earlier times. History for people.

        Read on a thread: a disk or a database may take its time.
        """
        return await in_thread(partial(history.remembered, self.folder, now_s))

    async def health(self, observed: Observed, *, probe: bool = False) -> dict[str, Verdict]:
        """What the head of every fully running gang says; with `probe`, its questions are asked too."""
        from reconciler.standing import asked  # noqa: PLC0415 - a plan asks no engine

        return await asked(self, observed, probe=probe)

    async def status(
        self,
        observed: Observed,
        *,
        probe: bool = False,
        now_s: float | None = None,
        past: Awaitable[history.Remembered] | None = None,
        health: Mapping[str, Verdict] | None = None,
    ) -> FleetStatus:
        """The fleet on its three axes. `now_s`: seconds since 1970, to tell for how long a lane has been booting.

        `past`: what is remembered, where somebody reads it already; `health`: where the lanes were asked already.
        """
        from reconciler.standing import standing  # noqa: PLC0415 - a plan needs none of it

        return await standing(self, observed, probe=probe, now_s=now_s, past=past, health=health)

    async def drift(
        self, observed: Observed, *, probe: bool = False, now_s: float | None = None, commit: str | None = None
    ) -> Report:
        """What differs from what is wanted, at `now_s` (seconds since 1970). Changes nothing."""
        from reconciler.drifting import Asking, Occasion, drift_report  # noqa: PLC0415 - a plan needs none of it

        return await drift_report(self, observed, Occasion(now_s or time.time(), commit), Asking(probe))

    async def logs(self, node: str, container: str, tail: int, *, follow: bool) -> AsyncIterator[str]:
        """Log lines of one container: the last `tail`, and with `follow` each new one. Raises `NodeError`."""
        session = await self.nodes.connect(node, OBSERVE_S)
        if follow:
            async for line in session.containers.follow(container, tail):
                yield line
        else:
            for line in await session.containers.logs(container, tail):
                yield line


def _today() -> str:
    """The day, as specs write it."""
    return time.strftime("%Y-%m-%d")
