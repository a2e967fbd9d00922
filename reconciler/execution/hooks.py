"""When hooks are called in a run, and what comes of it: `before_cut` decides whether a group is cut, others are told.

A group's hooks are all called before the first of its containers is stopped, so nothing is stopped in vain. The step
that waits for them is in the journal already: after a kill the node is looked at, the step is planned anew, and the
hooks are called anew.
"""

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from reconciler.core.desired import EnvValue
from reconciler.core.envelope import enveloped, line
from reconciler.core.events import HookEnded
from reconciler.core.hooks import (
    AfterConfirm,
    BeforeCut,
    Due,
    Fault,
    Hook,
    HookCall,
    HookError,
    OnFailure,
    Point,
    about,
    cut_gangs,
    environment,
    wanted,
)
from reconciler.core.log_text import last_lines, readable
from reconciler.core.machine import BAD, GOOD, Machine
from reconciler.core.outcome import is_as_before
from reconciler.core.plan import Op, Phase, Plan, Step
from reconciler.execution.secrets import SecretError, Secrets
from reconciler.nodes.protocols import Hooks


@dataclass
class HookCalls:
    """The hooks of one run of a plan."""

    plan: Plan
    hooks: tuple[Hook, ...]
    door: Hooks
    secrets: Secrets
    run_id: str
    on_event: Callable[[HookEnded], None]
    _asked: dict[tuple[str, ...], asyncio.Task[str]] = field(default_factory=dict)
    _told: set[asyncio.Task[str]] = field(default_factory=set)
    _calls: int = 0

    async def before_cut(self, group: tuple[str, ...]) -> str:
        """Call what this group has, once, however many of its steps ask; why it must not be cut, or nothing."""
        if not self.hooks:
            return ""
        if group not in self._asked:
            due = [BeforeCut(about(self.plan, gang)) for gang in cut_gangs(self.plan, group)]
            self._asked[group] = asyncio.create_task(self._all(Point.BEFORE_CUT, due))
        return await self._asked[group]

    def after(self, step: Step, machine: Machine) -> None:
        """Tell of a gang whose last mark of proof this step was, without waiting for it."""
        if step.op is not Op.CONFIRM or step.phase is not Phase.CONFIRM or not self.hooks:
            return
        marks = [item for item in self.plan.steps if item.gang == step.gang and item.op is Op.CONFIRM]
        if all(machine.status[item.id] in GOOD for item in marks):
            self._tell(self._all(Point.AFTER_CONFIRM, [AfterConfirm(about(self.plan, step.gang))]))

    async def end(self, machine: Machine, faults: Sequence[tuple[str, Fault]], stop: asyncio.Event) -> None:
        """Tell of the gangs that failed, then wait for all that were told, unless the run is interrupted."""
        found = dict.fromkeys(gang for gang, _ in faults)
        for gang in found if self.hooks and not stop.is_set() else ():
            self._tell(self._all(Point.ON_FAILURE, [self._failure(machine, gang, faults)]))
        if self._told:
            stopping = asyncio.ensure_future(stop.wait())
            while not stop.is_set() and (rest := [task for task in self._told if not task.done()]):
                await asyncio.wait([*rest, stopping], return_when=asyncio.FIRST_COMPLETED)
            stopping.cancel()

    @property
    def running(self) -> list[asyncio.Task[str]]:
        """Calls under way, to be cancelled when the run is left."""
        return [task for task in (*self._asked.values(), *self._told) if not task.done()]

    def _failure(self, machine: Machine, gang: str, faults: Sequence[tuple[str, Fault]]) -> OnFailure:
        bad = [step for step in machine.with_status(*BAD) if step.gang == gang and step.phase is not Phase.ROLLBACK]
        whole = all(is_as_before(machine, step) for step in bad)
        return OnFailure(about(self.plan, gang), whole, tuple(fault for of, fault in faults if of == gang))

    def _tell(self, work: Coroutine[Any, Any, str]) -> None:
        self._told.add(asyncio.create_task(work))

    async def _all(self, point: Point, dues: Iterable[Due]) -> str:
        """Call every hook for every placement at the same time; why the first of them did not end well, or nothing."""
        calls = [self._one(hook, due) for due in dues for hook in wanted(self.hooks, point, due.about.placement)]
        return next(filter(None, await asyncio.gather(*calls)), "")

    async def _one(self, hook: Hook, due: Due) -> str:
        began_s = asyncio.get_running_loop().time()
        self._calls += 1
        why, said = "", ""
        try:
            said = await self.door.call(await self._call(hook, due, self._calls))
        except HookError as error:
            why, said = error.why, error.said
        except SecretError as error:
            why = str(error)
        hide = self.secrets.hiding(hook.references)
        why, lines = readable(hide(why)), last_lines(hide(said).splitlines())
        told = (": " if len(lines) == 1 else "\n").join(filter(None, (why, "\n".join(lines))))
        seconds = asyncio.get_running_loop().time() - began_s
        self.on_event(HookEnded(hook.name, due.about.placement, not why, told, seconds))
        return f"hook {hook.name} for {due.about.placement}: {': '.join((why, *lines[-1:]))}" if why else ""

    async def _call(self, hook: Hook, due: Due, number: int) -> HookCall:
        """Raises `SecretError`."""
        values = await self.secrets.resolved(reference for _, reference in hook.references)

        def plain(value: EnvValue) -> str:
            return value if isinstance(value, str) else values[value.secret]

        given = {name: plain(value) for name, value in hook.given}
        own = environment(due, self.run_id) if hook.command else {}
        text = line(enveloped(due, self.run_id, number, time.time())) + "\n"
        url = plain(hook.url) if hook.url is not None else ""
        return HookCall(hook.name, hook.timeout_s, text, hook.command, hook.folder, url, {**own, **given})
