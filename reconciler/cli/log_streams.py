"""Prints the logs of a lane's ranks side by side."""

import asyncio
import json
from collections.abc import Callable, Iterable, Sequence

from reconciler.cli.wiring import say, stop_on_signals, warn
from reconciler.core.classify import ours
from reconciler.core.exits import Exit
from reconciler.core.explain import describe_end
from reconciler.core.observed import Container, Observed, Placed, Unknown
from reconciler.fleet import Fleet
from reconciler.views.words import one_line

Written = Callable[[Placed, str], str]
"""How a log line of a rank is printed."""


async def print_logs(fleet: Fleet, lane: str, rank: int | None, tail: int, *, follow: bool, as_json: bool) -> int:
    """Print the last `tail` lines of each rank, with `follow` also each new one; the exit code."""
    observed = await fleet.observe()
    every = [item for item in ours(fleet.desired, observed) if _lane(item) == lane]
    found = _newest(item for item in every if rank in {None, _rank(item)})
    away = _unread(fleet, observed, lane, rank)
    for state in away:
        _tell(state)
    if not found:
        warn(f"no container of lane {lane}{'' if rank is None else f' rank {rank}'} on the nodes that answer")
        warn(_next_step(fleet, lane, rank, every))
        return Exit.UNREACHABLE if away else Exit.ERROR
    stop = stop_on_signals(None) if follow else asyncio.Event()
    written = _as_json if as_json else _alone if len(found) == 1 and not away else _told_apart
    jobs = [asyncio.ensure_future(_print(fleet, item, tail, written, follow=follow)) for item in found]
    code = await _until_done_or(stop, jobs)
    return Exit.UNREACHABLE if away and code == Exit.OK else code


def _unread(fleet: Fleet, observed: Observed, lane: str, rank: int | None) -> list[Unknown]:
    """The nodes that cannot be read where the lane belongs; of a lane that is placed nowhere, all such nodes."""
    placed = [gang for gang in fleet.desired.gangs if gang.lane == lane]
    homes = {item.node for gang in placed for item in gang.ranks if rank in {None, item.index}}
    states = (observed.nodes[name] for name in sorted(observed.nodes) if name in homes or not placed)
    return [state for state in states if isinstance(state, Unknown)]


def _tell(state: Unknown) -> None:
    """Why a node cannot be read, and what to do about it."""
    warn(f"{state.node} cannot be read: {one_line(state.reason)}")
    for line in state.hint.splitlines():
        warn(f"    {one_line(line)}")


def _next_step(fleet: Fleet, lane: str, rank: int | None, found: Sequence[Placed]) -> str:
    if lane not in fleet.spec.lanes and not found:
        return f"the spec has no lane of this name (it has: {', '.join(sorted(fleet.spec.lanes)) or 'none'})"
    sizes = [len(gang.ranks) for gang in fleet.desired.gangs if gang.lane == lane]
    sizes += [item.container.owner.size for item in found if item.container.owner]
    size = max(sizes, default=fleet.spec.lanes[lane].node_count if lane in fleet.spec.lanes else 0)
    if rank is not None and rank >= size:
        return f"lane {lane} has {'only rank 0' if size == 1 else f'ranks 0 to {size - 1}'}"
    return "`fleet status` shows what is there"


async def _until_done_or(stop: asyncio.Event, jobs: Sequence[asyncio.Future[None]]) -> int:
    """Wait for all jobs or the signal; the exit code."""
    watch = asyncio.ensure_future(stop.wait())
    watch.add_done_callback(lambda done: None if done.cancelled() else [job.cancel() for job in jobs])
    results = await asyncio.gather(*jobs, return_exceptions=True)
    watch.cancel()
    for result in results:
        if isinstance(result, Exception):
            raise result
    return 130 if stop.is_set() else 0


def _newest(items: Iterable[Placed]) -> list[Placed]:
    """The newest container of each rank, running ones first."""
    best: dict[tuple[str, int], Placed] = {}
    for item in items:
        owner = item.container.owner
        key = (owner.gang if owner else "", _rank(item))
        if key not in best or _order(item) > _order(best[key]):
            best[key] = item
    return [best[key] for key in sorted(best)]


def _order(item: Placed) -> tuple[bool, int]:
    owner = item.container.owner
    return item.container.is_running, owner.revision if owner else 0


async def _print(fleet: Fleet, item: Placed, tail: int, written: Written, *, follow: bool) -> None:
    silent = True
    async for line in fleet.logs(item.node, item.container.id, tail, follow=follow):
        say(f"{written(item, line)}\n")
        silent = False
    if silent and tail:
        warn(f"rank {_rank(item)} on {item.node}: no log lines ({item.container.name} {_state(item.container)})")


def _state(container: Container) -> str:
    """What explains the silence: it never started, it ended, or it has nothing to say so far."""
    return "runs" if container.state == "running" else one_line(describe_end(container))


def _alone(item: Placed, line: str) -> str:
    return line


def _told_apart(item: Placed, line: str) -> str:
    return f"{_rank(item)}@{item.node} | {line}"


def _as_json(item: Placed, line: str) -> str:
    row = {"rank": _rank(item), "node": item.node, "container": item.container.name, "line": line}
    return json.dumps(row, ensure_ascii=False)


def _rank(item: Placed) -> int:
    return item.container.owner.rank if item.container.owner else 0


def _lane(item: Placed) -> str | None:
    return item.container.owner.lane if item.container.owner else None
