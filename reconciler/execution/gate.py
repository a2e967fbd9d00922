"""Watches a gang until its gate has passed or can no longer pass. What is seen is judged by `reconciler.core.gate`."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from reconciler.core.answers import Answer, probe_request, told
from reconciler.core.desired import Endpoint, Gang, RankSpec
from reconciler.core.gate import (
    Health,
    Verdict,
    judge_endpoint,
    judge_health,
    judge_models,
    judge_probe,
    judge_ranks,
    judge_restarts,
)
from reconciler.core.observed import Container
from reconciler.core.phases import ANSWER, API, FIRST, ORDER, TOKEN, Boot, LogRules, reached
from reconciler.core.probes import Probe
from reconciler.engines import ENGINES
from reconciler.nodes.errors import ErrorKind, NodeError
from reconciler.nodes.protocols import Fleet, Node

CONNECT_S = 10.0
HTTP_S = 10.0
TAIL = 50
"""Lines read of each rank at each look. Docker keeps a long line in pieces and counts these, so it is bounded, too."""


@dataclass
class GangWatch:
    """One gang being watched. `refs`: the container of each rank, by name or id."""

    fleet: Fleet
    gang: Gang
    refs: Mapping[int, str]
    boot: Boot = field(init=False)
    _first: tuple[Container | None, ...] | None = None

    def __post_init__(self) -> None:
        self.boot = Boot(FIRST, now_s())
        self.rules = _rules(self.gang.engine)

    async def look(self) -> Verdict:
        """One look: ranks, their pages, health path, model list; without any generation."""
        found = await self.containers()
        verdict = judge_ranks(self.gang, found) or judge_restarts(self.gang, self._first or found, found)
        if verdict is None:
            verdict = judge_health(self.gang.gate, await self._get(self.gang.gate.path))
        if verdict is None:
            verdict = await self._look_at_pages()
        if verdict is None:
            verdict = judge_models(self.gang.gate, await self._get("/v1/models"))
        if verdict is None:
            self.has_reached(API)
        return verdict or Verdict(Health.HEALTHY, "serving")

    async def _look_at_pages(self) -> Verdict | None:
        pages = [(rank, endpoint) for rank in self.gang.ranks for endpoint in rank.endpoints]
        answers = await asyncio.gather(*(self._page(rank, endpoint) for rank, endpoint in pages))
        verdicts = (judge_endpoint(*page, answer) for page, answer in zip(pages, answers, strict=True))
        return next((verdict for verdict in verdicts if verdict is not None), None)

    async def _page(self, rank: RankSpec, endpoint: Endpoint) -> Answer:
        return await self._http(rank.index, (endpoint.address, endpoint.port), "GET", endpoint.path, None, HTTP_S)

    async def ask(self) -> Verdict:
        """Put every probe; the first wrong answer is the verdict."""
        answers = []
        self.has_reached(TOKEN)
        for probe in self.gang.gate.probes:
            answer = await self._put(probe)
            if answer.status is not None:
                self.has_reached(ANSWER)
            verdict = judge_probe(probe, answer)
            if verdict is not None:
                return verdict
            answers.append(told(probe, answer))
        return Verdict(Health.HEALTHY, "serving", "; ".join(answers))

    def has_reached(self, phase: str) -> None:
        """Note that the boot is so far."""
        self.boot = self.boot.at(phase, now_s())

    async def containers(self) -> tuple[Container | None, ...]:
        """The container of each rank now; the first ones seen are those that must not start again."""
        found = tuple(await asyncio.gather(*(self._inspect(rank.index) for rank in self.gang.ranks)))
        self._first = self._first or found
        return found

    async def _inspect(self, index: int) -> Container | None:
        node = await self.node(index)
        return await node.containers.inspect(self.refs[index])

    async def logs(self, index: int, tail: int = 20) -> tuple[str, ...]:
        """The last lines of a rank's present life; empty when they cannot be had."""
        first = self._first[index] if self._first is not None else None
        try:
            node = await self.node(index)
            return tuple(await node.containers.logs(self.refs[index], tail, first.started_at if first else ""))
        except NodeError:
            return ()

    async def read(self) -> tuple[tuple[str, ...], ...]:
        """The last lines of every rank; notes how far the boot is by them."""
        lines = tuple(await asyncio.gather(*(self.logs(rank.index, TAIL) for rank in self.gang.ranks)))
        self.has_reached(max((reached(self.rules, said) for said in lines), key=ORDER.index))
        return lines

    async def node(self, index: int) -> Node:
        """The node of a rank. Raises `NodeError`."""
        return await self.fleet.connect(self.gang.ranks[index].node, CONNECT_S)

    async def _get(self, path: str) -> Answer:
        return await self.http("GET", path, None, HTTP_S)

    async def _put(self, probe: Probe) -> Answer:
        if probe.kind == "command":
            return await self._run(probe)
        method, path, body = probe_request(self.gang.gate.served_name, probe)
        return await self.http(method, path, body, probe.timeout_s)

    async def _run(self, probe: Probe) -> Answer:
        try:
            head = await self.node(0)
            end = await head.containers.run(self.refs[0], probe.command, probe.timeout_s)
        except NodeError as error:
            return _no_answer(error)
        return Answer(end.code, end.output)

    async def http(self, method: str, path: str, body: Mapping[str, object] | None, timeout_s: float) -> Answer:
        """What the head answers."""
        gate = self.gang.gate
        return await self._http(0, (gate.address, gate.port), method, path, body, timeout_s)

    async def _http(
        self,
        index: int,
        place: tuple[str, int],
        method: str,
        path: str,
        body: Mapping[str, object] | None,
        timeout_s: float,
    ) -> Answer:
        try:
            node = await self.node(index)
            reply = await node.engines.http(*place, method, path, body, timeout_s)
        except NodeError as error:
            return _no_answer(error)
        return Answer(reply.status, reply.body)


def _no_answer(error: NodeError) -> Answer:
    return Answer(None, error=error.message, late=error.kind is ErrorKind.TIMEOUT)


def _rules(engine: str) -> LogRules:
    """What the log lines of an engine mean; nothing is known of one that this release does not know."""
    known = ENGINES.get(engine)
    if known is None:
        return LogRules()
    return LogRules(tuple((phase.name, phase.pattern) for phase in known.phases), known.fatal)


def now_s() -> float:
    """Seconds of the loop's clock."""
    return asyncio.get_running_loop().time()


async def judged(watch: GangWatch, *, probe: bool) -> Verdict:
    """One verdict; with `probe` a gang that looks healthy has to answer too. A lost connection makes it unknown."""
    try:
        verdict = await watch.look()
        return await watch.ask() if probe and verdict.health is Health.HEALTHY else verdict
    except NodeError as error:
        return Verdict(Health.UNKNOWN, "connection", error.message)


async def seen(watch: GangWatch, *, probe: bool) -> Verdict:
    """The same, and of a gang that boots the phase, as its logs tell. Those of a healthy one are not read."""
    verdict = await judged(watch, probe=probe)
    if verdict.health is not Health.PROGRESSING:
        return verdict
    await watch.read()
    return verdict if watch.boot.phase == FIRST else replace(verdict, phase=watch.boot.phase)


async def all_seen(
    watches: Sequence[GangWatch], *, probe: bool, heard: Callable[[str, Verdict], object]
) -> dict[str, Verdict]:
    """The same of each gang, by address. `heard` is told of each at once: for who may give up on the others."""

    async def one(watch: GangWatch) -> Verdict:
        verdict = await seen(watch, probe=probe)
        heard(watch.gang.address, verdict)
        return verdict

    verdicts = await asyncio.gather(*map(one, watches))
    return {watch.gang.address: verdict for watch, verdict in zip(watches, verdicts, strict=True)}
