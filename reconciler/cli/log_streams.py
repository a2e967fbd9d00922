"""Prints the logs of a lane's ranks side by side."""

import asyncio
import json
from collections.abc import Callable, Sequence

from reconciler.cli.wiring import say, stop_on_signals, warn
from reconciler.core.classify import Placed, ours
from reconciler.fleet import Fleet

Written = Callable[[Placed, str], str]
"""How a log line of a rank is printed."""


async def print_logs(fleet: Fleet, lane: str, rank: int | None, tail: int, *, follow: bool, as_json: bool) -> int:
    """Print the last `tail` lines of each rank, with `follow` also each new one; the exit code."""
    found = await _containers(fleet, lane, rank)
    if not found:
        warn(f"no container of lane {lane}{'' if rank is None else f' rank {rank}'} on the nodes that answer")
        warn(_next_step(fleet, lane))
        return 1
    stop = stop_on_signals(None) if follow else asyncio.Event()
    written = _as_json if as_json else _alone if len(found) == 1 else _told_apart
    jobs = [asyncio.ensure_future(_print(fleet, item, tail, written, follow=follow)) for item in found]
    return await _until_done_or(stop, jobs)


def _next_step(fleet: Fleet, lane: str) -> str:
    if lane in fleet.spec.lanes:
        return "`fleet status` shows what is there"
    return f"the spec has no lane of this name (it has: {', '.join(sorted(fleet.spec.lanes)) or 'none'})"


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


async def _containers(fleet: Fleet, lane: str, rank: int | None) -> list[Placed]:
    """The newest container of each rank of the lane, running ones first."""
    best: dict[tuple[str, int], Placed] = {}
    for item in ours(fleet.desired, await fleet.observe()):
        owner = item.container.owner
        if owner is None or owner.lane != lane or rank not in {None, owner.rank}:
            continue
        key = (owner.gang, owner.rank)
        if key not in best or _order(item) > _order(best[key]):
            best[key] = item
    return [best[key] for key in sorted(best)]


def _order(item: Placed) -> tuple[bool, int]:
    owner = item.container.owner
    return item.container.is_running, owner.revision if owner else 0


async def _print(fleet: Fleet, item: Placed, tail: int, written: Written, *, follow: bool) -> None:
    async for line in fleet.logs(item.node, item.container.id, tail, follow=follow):
        say(f"{written(item, line)}\n")


def _alone(item: Placed, line: str) -> str:
    return line


def _told_apart(item: Placed, line: str) -> str:
    return f"{_rank(item)}@{item.node} | {line}"


def _as_json(item: Placed, line: str) -> str:
    row = {"rank": _rank(item), "node": item.node, "container": item.container.name, "line": line}
    return json.dumps(row, ensure_ascii=False)


def _rank(item: Placed) -> int:
    return item.container.owner.rank if item.container.owner else 0
