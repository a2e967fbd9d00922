"""Watches a gang until its gate has passed or can no longer pass. What is seen is judged by `reconciler.core.gate`."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from reconciler.core.answers import Answer, probe_request, told
from reconciler.core.desired import Gang
from reconciler.core.gate import Health, Verdict, judge_health, judge_models, judge_probe, judge_ranks
from reconciler.core.observed import Container
from reconciler.core.probes import Probe
from reconciler.nodes.errors import ErrorKind, NodeError
from reconciler.nodes.protocols import Fleet, Node

CONNECT_S = 10.0
HTTP_S = 10.0
WRONG_ANSWERS = 3
"""A wrong answer is asked again this often in all: the first generation after a load may be cut short."""

Say = Callable[[str], None]


@dataclass
class GangWatch:
    """One gang being watched. `refs`: the container of each rank, by name or id."""

    fleet: Fleet
    gang: Gang
    refs: Mapping[int, str]
    _last_lines: dict[int, str] = field(default_factory=dict)
    _changed_at_s: float = 0.0

    async def look(self) -> Verdict:
        """One look: ranks, health path, model list; without any generation."""
        found = await self.containers()
        verdict = judge_ranks(self.gang, found)
        if verdict is None:
            verdict = judge_health(self.gang.gate, await self._get(self.gang.gate.path))
        if verdict is None:
            verdict = judge_models(self.gang.gate, await self._get("/v1/models"))
        return verdict or Verdict(Health.HEALTHY, "serving")

    async def ask(self) -> Verdict:
        """Put every probe; the first wrong answer is the verdict."""
        answers = []
        for probe in self.gang.gate.probes:
            answer = await self._put(probe)
            verdict = judge_probe(probe, answer)
            if verdict is not None:
                return verdict
            answers.append(told(probe, answer))
        return Verdict(Health.HEALTHY, "serving", "; ".join(answers))

    async def containers(self) -> tuple[Container | None, ...]:
        """The container of each rank now."""
        return tuple(await asyncio.gather(*(self._inspect(rank.index) for rank in self.gang.ranks)))

    async def _inspect(self, index: int) -> Container | None:
        node = await self._node(index)
        return await node.containers.inspect(self.refs[index])

    async def logs(self, index: int, tail: int = 20) -> tuple[str, ...]:
        """The last lines of a rank; empty when they cannot be had."""
        try:
            node = await self._node(index)
            return tuple(await node.containers.logs(self.refs[index], tail))
        except NodeError:
            return ()

    async def _node(self, index: int) -> Node:
        return await self.fleet.connect(self.gang.ranks[index].node, CONNECT_S)

    async def _get(self, path: str) -> Answer:
        return await self._http("GET", path, None, HTTP_S)

    async def _put(self, probe: Probe) -> Answer:
        method, path, body = probe_request(self.gang.gate.served_name, probe)
        return await self._http(method, path, body, probe.timeout_s)

    async def _http(self, method: str, path: str, body: Mapping[str, object] | None, timeout_s: float) -> Answer:
        gate = self.gang.gate
        try:
            head = await self._node(0)
            reply = await head.engines.http(gate.address, gate.port, method, path, body, timeout_s)
        except NodeError as error:
            return Answer(None, error=error.message, late=error.kind is ErrorKind.TIMEOUT)
        return Answer(reply.status, reply.body)

    async def newest_line(self) -> str:
        """The head's last log line; remembers when any rank last said something new."""
        for rank in self.gang.ranks:
            line = next(iter(await self.logs(rank.index, 1)), "")
            if line != self._last_lines.get(rank.index):
                self._last_lines[rank.index] = line
                self._changed_at_s = _now_s()
        return self._last_lines.get(0, "")

    def silent_s(self) -> float:
        """Seconds since any rank said something new."""
        return _now_s() - self._changed_at_s


def _now_s() -> float:
    return asyncio.get_running_loop().time()


async def wait_until_proved(watch: GangWatch, say: Say) -> Verdict:
    """Look again and again until the gang is healthy or has failed, within its boot budget.

    A lost connection is not a dead rank: it is waited out. `say` gets one short line per look.
    """
    gate = watch.gang.gate
    deadline_s = _now_s() + gate.boot_s
    wrong = 0
    while True:
        verdict = await judged(watch, probe=True)
        wrong += verdict.phase == "probe"
        if verdict.health is Health.HEALTHY or (
            verdict.is_final and (verdict.phase != "probe" or wrong >= WRONG_ANSWERS)
        ):
            return verdict
        line = await watch.newest_line()
        say(f"{verdict.detail}{f' | {line}' if line else ''}")
        if _now_s() >= deadline_s:
            return _over(verdict, f"not healthy within its boot budget of {gate.boot_s:g} s: {verdict.detail}")
        if watch.silent_s() >= gate.stall_s:
            return _over(verdict, f"no new log line for {gate.stall_s:g} s: {verdict.detail}")
        await asyncio.sleep(gate.interval_s)


def _over(verdict: Verdict, detail: str) -> Verdict:
    return Verdict(Health.DEGRADED, verdict.phase, detail, verdict.rank)


async def judged(watch: GangWatch, *, probe: bool) -> Verdict:
    """One verdict; with `probe` a gang that looks healthy has to answer too. A lost connection makes it unknown."""
    try:
        verdict = await watch.look()
        return await watch.ask() if probe and verdict.health is Health.HEALTHY else verdict
    except NodeError as error:
        return Verdict(Health.UNKNOWN, "connection", error.message)
