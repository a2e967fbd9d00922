"""Carries out the preflight of a gang: a container of its own runs to its end, is judged, and is gone.

Whatever its end, nothing of it stays: not after a refusal, nor past its deadline, nor when it is called off. After a
lost reply the container is looked for by its operation, so it runs once.
"""

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field

from reconciler.core.desired import Gang, Preflight
from reconciler.core.explain import describe_end
from reconciler.core.log_text import last_lines
from reconciler.core.observed import Container
from reconciler.core.plan import Plan, Step
from reconciler.core.preflight import preflight_container, preflight_labels
from reconciler.execution.fencing import FencedNode
from reconciler.execution.outcomes import APPLIED, Outcome, failed, stale
from reconciler.execution.postmortem import with_cause
from reconciler.execution.secrets import Secrets
from reconciler.nodes.errors import NodeError
from reconciler.nodes.protocols import OnProgress, Progress

POLL_S = 1.0
READ = 200
"""So many of its last lines are read for why it refuses; few of them are shown."""

LINE_LETTERS = 300
"""So much of the last line is told with the end itself."""

ENDED_BY_OTHERS = frozenset({137, 143})
"""Exit codes of SIGKILL and SIGTERM: the image has not come to say anything of the command line."""

LETTING_GO_S = 1.0
"""What removing it gets when it is called off: an interrupt lets go within five seconds."""


@dataclass(frozen=True)
class Preflights:
    """Those of one run."""

    plan: Plan
    run_id: str
    secrets: Secrets
    _deadlines: dict[str, float] = field(default_factory=dict)
    """By step: when it has to have ended, on the loop's clock. A lost connection gains it no time."""
    _ends: dict[str, Outcome] = field(default_factory=dict)
    """By step: how it was judged, before its container was removed."""

    async def carry_out(self, step: Step, node: FencedNode, on_progress: OnProgress) -> Outcome:
        """Run it and wait for its end. Raises `NodeError` and `SecretError`."""
        gang = self.plan.gang(step.gang)
        if gang.preflight is None:
            raise KeyError(f"{step.gang} has no preflight")
        try:
            if step.id not in self._ends:
                self._ends[step.id] = await self._tried(step, node, gang, gang.preflight, on_progress)
            await self._cleared(step, node)
        except asyncio.CancelledError:
            with suppress(NodeError, TimeoutError):
                async with asyncio.timeout(LETTING_GO_S):
                    await self._cleared(step, node)
            raise
        except NodeError as error:
            if not error.is_transport:  # what could not be started is not left either
                with suppress(NodeError):
                    await self._cleared(step, node)
            raise
        return self._ends[step.id]

    async def _tried(
        self, step: Step, node: FencedNode, gang: Gang, preflight: Preflight, on_progress: OnProgress
    ) -> Outcome:
        now_s = asyncio.get_running_loop().time
        deadline_s = self._deadlines.setdefault(step.id, now_s() + preflight.deadline_s)
        found = await self._present(step, node, gang, preflight)
        if isinstance(found, Outcome):
            return found
        if found.state == "created":
            await node.containers.start(found.id)
        while (look := await node.containers.inspect(found.id)) is not None and look.is_running:
            if now_s() >= deadline_s:
                logs = last_lines(await node.containers.logs(look.id, READ))
                more = "the lane's `preflight: {deadline: ...}` gives it more"
                return failed(f"the preflight did not end within {preflight.deadline_s:g} s; {more}", logs)
            on_progress(Progress(0, None, f"{preflight.entrypoint[0]} is at work"))
            await asyncio.sleep(POLL_S)
        return await _judged(node, look)

    async def _present(self, step: Step, node: FencedNode, gang: Gang, preflight: Preflight) -> Container | Outcome:
        """Its container: the one that an earlier try made, or a new one."""
        found = await node.containers.inspect(step.target)
        operation = f"{self.run_id}/{step.id}"
        if found is not None and found.preflight is not None and found.preflight.operation == operation:
            return found
        if found is not None:
            mark = found.preflight
            if mark is None or (mark.fleet, mark.gang) != (self.plan.fleet, gang.address):
                return stale(f"{found.name} is there already on {node.name}, and is not of {gang.address}")
            await removed(node, found)  # of a run that was killed: the lease of the node is ours now
        container = preflight_container(gang, preflight)
        image = await node.images.present(container.image)
        if image is None:
            return stale(f"image {container.image.short} is not on {node.name} any more")
        marks = preflight_labels(self.plan.fleet, gang, container, operation)
        values, _ = await self.secrets.handed(container)
        made = await node.containers.create(step.target, container, image.id, marks, values)
        return await node.containers.inspect(made) or stale(f"{step.target} is gone from {node.name}")

    async def _cleared(self, step: Step, node: FencedNode) -> None:
        """Remove what this run made for the step; no effect when it is gone."""
        found = await node.containers.inspect(step.target)
        if found is not None and found.preflight and found.preflight.operation == f"{self.run_id}/{step.id}":
            await removed(node, found)


async def removed(node: FencedNode, found: Container) -> None:
    """Stop and remove the container of a preflight. It has nothing to put in order, so it gets no time to stop."""
    if found.is_running:
        await node.containers.stop(found.id, 0.0)
    await node.containers.remove(found.id)


async def _judged(node: FencedNode, found: Container | None) -> Outcome:
    if found is None:
        return failed(f"somebody has removed the preflight's container from {node.name}")
    if found.exit_code == 0:
        return APPLIED
    read = await node.containers.logs(found.id, READ)
    logs = last_lines(read)
    said = f": {logs[-1][:LINE_LETTERS].strip()}" if logs else ""
    ended = (
        "the preflight" if found.exit_code in ENDED_BY_OTHERS else "the image refuses the command line; its preflight"
    )
    outcome = failed(f"{ended} {describe_end(found)}{said}", logs)
    return with_cause(outcome, read, found.exit_code, oom_killed=found.oom_killed)
