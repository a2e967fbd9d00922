"""Waits until a gang is proved, or has failed: by its budget, a line after which nothing comes, or standing still."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from reconciler.core.desired import Gang
from reconciler.core.figures import duration
from reconciler.core.gate import Health, Verdict
from reconciler.core.observed import NodeFacts
from reconciler.core.phases import FIRST, Signs, fatal_line
from reconciler.execution.gate import GangWatch, judged, now_s
from reconciler.execution.pace import paced
from reconciler.nodes.errors import NodeError

WRONG_ANSWERS = 3
"""A wrong answer is asked again this often in all: the first generation after a load may be cut short."""

QUIET_S = 30.0
"""After so long without a new line, memory and disk are looked at, too, and then as often."""

Usual = Callable[[Gang], Mapping[str, float]]
"""The seconds that each phase of a gang's boot usually takes, as far as it is known."""

Say = Callable[[str], None]
Lines = tuple[tuple[str, ...], ...]


async def wait_until_proved(watch: GangWatch, say: Say, usual: Mapping[str, float]) -> Verdict:
    """Look again and again until the gang is healthy or has failed, within its boot budget.

    A lost connection is not a dead rank: it is waited out. `say` gets one short line per look; `usual`: seconds that
    phases took before.
    """
    deadline_s = now_s() + watch.gang.gate.boot_s
    stirring = Stirring(watch)
    wrong = 0
    while True:
        verdict = await judged(watch, probe=True)
        wrong += verdict.phase == "probe"
        if verdict.health is Health.HEALTHY:
            return await _as_fast_as_wanted(watch, verdict, say)
        if verdict.is_final and (verdict.phase != "probe" or wrong >= WRONG_ANSWERS):
            return verdict
        lines = await watch.read()
        say(_news(watch, verdict, lines, usual))
        over = _late(watch, verdict, deadline_s)
        if over is None and verdict.phase != "probe":  # it serves: only its answers are not right yet
            over = _hopeless(watch, lines) or await stirring.stalled(lines)
        if over is not None:
            return over
        await asyncio.sleep(max(0.0, min(watch.gang.gate.interval_s, deadline_s - now_s())))


async def _as_fast_as_wanted(watch: GangWatch, verdict: Verdict, say: Say) -> Verdict:
    wanted = watch.gang.gate.performance
    if wanted is None:
        return verdict
    say(f"being timed behind {wanted.context} tokens")
    return await paced(watch, wanted)


def _news(watch: GangWatch, verdict: Verdict, lines: Lines, usual: Mapping[str, float]) -> str:
    """What it waits for: the phase where one is known, what the head answers, and its last line."""
    phase = "" if watch.boot.phase == FIRST else watch.boot.told(now_s(), usual)
    last = lines[0][-1] if lines and lines[0] else ""
    return " | ".join(part for part in (phase, verdict.detail, last) if part)


def _hopeless(watch: GangWatch, lines: Lines) -> Verdict | None:
    """A rank has said that it cannot go on: nothing is gained by waiting for its end."""
    for rank, said in zip(watch.gang.ranks, lines, strict=True):
        line = fatal_line(watch.rules, said)
        if line is not None:
            told = f"rank {rank.index} on {rank.node} cannot go on: {line}"
            return Verdict(Health.DEGRADED, watch.boot.phase, told, rank.index)
    return None


def _late(watch: GangWatch, verdict: Verdict, deadline_s: float) -> Verdict | None:
    budget_s = watch.gang.gate.boot_s
    if now_s() < deadline_s:
        return None
    phase = "" if watch.boot.phase == FIRST else f" (the phase {watch.boot.told(now_s(), {})})"
    told = f"not healthy within its boot budget of {budget_s:g} s{phase}: {verdict.detail}"
    health = Health.UNKNOWN if verdict.health is Health.UNKNOWN else Health.DEGRADED
    return Verdict(health, verdict.phase, told, verdict.rank)


@dataclass
class Stirring:
    """Whether a booting gang moves: a new line of any rank, or memory or disk of any of its nodes."""

    watch: GangWatch
    _signs: dict[int, Signs] = field(default_factory=dict)
    _moved_s: float = field(default_factory=now_s)
    _looked_s: float = field(default_factory=now_s)

    async def stalled(self, lines: Lines) -> Verdict | None:
        """The end of a gang that stands still; None while it moves, or has not stood still for long enough."""
        for rank, said in zip(self.watch.gang.ranks, lines, strict=True):
            self._take(rank.index, Signs(line=said[-1] if said else ""))
        stall_s = self.watch.gang.gate.stall_s
        if now_s() - max(self._moved_s, self._looked_s) >= min(QUIET_S, stall_s / 4):
            await self._look_deeper()
        if now_s() - self._moved_s < stall_s:
            return None
        told = f"no progress for {duration(stall_s)}, neither in the logs nor in memory or disk"
        return Verdict(Health.DEGRADED, self.watch.boot.phase, f"{told}: {self._where}", None)

    @property
    def _where(self) -> str:
        boot = self.watch.boot
        return "it has said nothing of a phase" if boot.phase == FIRST else f"it was {boot.told(now_s(), {})}"

    async def _look_deeper(self) -> None:
        self._looked_s = now_s()
        ranks = self.watch.gang.ranks
        for rank, facts in zip(ranks, await asyncio.gather(*(self._facts(item.index) for item in ranks)), strict=True):
            if facts is not None:
                self._take(rank.index, Signs("", facts.memory_available_bytes, facts.disk_free_bytes))

    async def _facts(self, index: int) -> NodeFacts | None:
        try:
            return await (await self.watch.node(index)).observer.observe()
        except NodeError:
            return None

    def _take(self, index: int, now: Signs) -> None:
        before = self._signs.get(index, Signs())
        if before.moved(now):
            self._moved_s = now_s()
        self._signs[index] = before.then(now)
