"""Why a boot failed: looks at the ranks that ended and reads their logs, within bounds. What it means is pure.

Docker keeps a line in pieces of 16 KiB and counts those, so the tail of a log is never more than `READ` times that,
whatever the engine printed, and however fast.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from reconciler.core.causes import Cause, diagnose
from reconciler.core.ends import End, blamed, ends_of, error_of
from reconciler.core.explain import describe_end
from reconciler.core.gate import Health, Verdict
from reconciler.core.host import Clock
from reconciler.core.log_text import last_lines, readable
from reconciler.core.machine import Status
from reconciler.core.plan import Op, Step
from reconciler.execution.clocks import in_order
from reconciler.execution.gate import GangWatch
from reconciler.execution.outcomes import Outcome, failed
from reconciler.nodes.errors import NodeError
from reconciler.nodes.protocols import Fleet

READ = 400
"""Lines read of a log: an engine's trace of one error, from each of its processes."""

STATUS_READ = 100
"""Lines that `fleet status` reads of each rank that ended."""

STATUS_S = 3.0

BUDGET_S = 15.0
"""Seconds for all logs. A failure is told without them rather than late."""


async def explained(watch: GangWatch, verdict: Verdict) -> Outcome:
    """The failure that `verdict` tells of, with the rank to blame, the cause, and that rank's last lines.

    A node that could not be asked until the budget was over is no failure of what runs there.
    """
    if verdict.health is Health.UNKNOWN:
        return Outcome(Status.UNREACHABLE, verdict.detail)
    ends = await _ends(watch)
    if ends:
        read, clocks = await asyncio.gather(_with_logs(watch, ends), _clocks(watch, ends))
        return _of_the_dead(in_order(read, clocks), verdict)
    lines = await _lines(watch, verdict.rank or 0)
    outcome = failed(verdict.detail, last_lines(lines))
    return outcome if verdict.phase == "probe" else with_cause(outcome, lines)


async def _ends(watch: GangWatch) -> tuple[End, ...]:
    try:
        async with asyncio.timeout(BUDGET_S):
            return ends_of(watch.gang, await watch.containers())
    except (NodeError, TimeoutError):
        return ()


async def _clocks(watch: GangWatch, ends: Sequence[End]) -> dict[str, Clock]:
    """The clocks by which the ends are told, as far as they are known; not asked of ranks of one node."""
    ranks = {end.node: end.rank for end in ends}
    if len(ranks) == 1:
        return {}
    found = await asyncio.gather(*(_clock(watch, rank) for rank in ranks.values()))
    return {node: clock for node, clock in zip(ranks, found, strict=True) if clock is not None}


async def _clock(watch: GangWatch, rank: int) -> Clock | None:
    try:
        async with asyncio.timeout(BUDGET_S):
            return (await (await watch.node(rank)).observer.observe()).host.clock
    except (NodeError, TimeoutError):
        return None


async def _with_logs(watch: GangWatch, ends: Sequence[End]) -> tuple[End, ...]:
    logs = await asyncio.gather(*(_lines(watch, end.rank) for end in ends))
    return tuple(replace(end, lines=lines) for end, lines in zip(ends, logs, strict=True))


async def _lines(watch: GangWatch, rank: int) -> tuple[str, ...]:
    try:
        async with asyncio.timeout(BUDGET_S):
            return await watch.logs(rank, READ)
    except TimeoutError:
        return ()


async def ends_read(fleet: Fleet, ends: Sequence[End]) -> tuple[End, ...]:
    """The same ends with a little of their logs, for a status that must not wait: what is late is left out."""
    return tuple(await asyncio.gather(*(_end_read(fleet, end) for end in ends)))


async def _end_read(fleet: Fleet, end: End) -> End:
    try:
        async with asyncio.timeout(STATUS_S):
            node = await fleet.connect(end.node, STATUS_S)
            return replace(
                end, lines=tuple(await node.containers.logs(end.container.id, STATUS_READ, end.container.started_at))
            )
    except (NodeError, TimeoutError):
        return end


def _of_the_dead(ends: Sequence[End], verdict: Verdict) -> Outcome:
    found = blamed(ends)
    if found is not None:
        end, cause = found
        return failed(_told(_end_told(end), cause), last_lines(end.lines), cause.id)
    said = error_of(ends)
    if said is not None:
        end, error = said
        return failed(f"{_end_told(end)}: {error}", last_lines(end.lines))
    first = next((end for end in ends if end.rank == verdict.rank), ends[0])
    return failed(_end_told(first), last_lines(first.lines))


def _end_told(end: End) -> str:
    return f"rank {end.rank} on {end.node} {describe_end(end.container)}"


def _told(what: str, cause: Cause) -> str:
    return f"{what}: {cause.told}"


EXPLAINED = frozenset({Op.START, Op.PREFLIGHT})
"""Steps that fail for what the engine, or Docker of its image, says."""


def named(step: Step, outcome: Outcome) -> Outcome:
    """The failure of such a step with its cause, when the catalogue has one for what was said."""
    if outcome.status is not Status.FAILED or outcome.cause or step.op not in EXPLAINED:
        return outcome
    return with_cause(outcome, (*outcome.logs, outcome.detail))


def with_cause(
    outcome: Outcome, lines: Iterable[str], exit_code: int | None = None, *, oom_killed: bool = False
) -> Outcome:
    """The failure with its cause, as far as these lines of a log, the exit code and Docker's flag tell."""
    cause = diagnose([readable(line) for line in lines], exit_code, oom_killed)
    return replace(outcome, detail=_told(outcome.detail, cause), cause=cause.id) if cause else outcome


Hide = Callable[[str], str]
"""Takes the values of secrets out of a text."""


def shown(outcome: Outcome, hide: Hide) -> Outcome:
    """The outcome as it may be shown and kept: without secrets, and without what acts on a terminal."""
    logs = tuple(readable(hide(line)) for line in outcome.logs)
    return replace(outcome, detail=readable(hide(outcome.detail), DETAIL_LENGTH), logs=logs)


DETAIL_LENGTH = 2000
"""Characters of a sentence about a failure; an engine's own error is part of it."""
