"""How far the pulls of an apply are: bytes, rate and remaining time, of each and of all together."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from reconciler.core.events import Event, RunStarted, StepEnded, StepProgress, StepStarted
from reconciler.core.plan import BRINGS, Step
from reconciler.views.event_text import step_words
from reconciler.views.words import duration, one_line, size

WINDOW_S = 20.0
"""The rate is that of the last so many seconds."""

LINE_S = 10.0
LINE_SHARE = 0.1
"""In plain lines, a pull is told of when so much time has passed and so much of it has come since the last time."""


@dataclass(frozen=True)
class Meter:
    """How far it is. None where it is not known (yet)."""

    done_bytes: int
    total_bytes: int | None
    bytes_per_s: float | None

    @property
    def left_s(self) -> float | None:
        """How long the rest takes at this rate."""
        if not self.total_bytes or not self.bytes_per_s:
            return None
        return max(self.total_bytes - self.done_bytes, 0) / self.bytes_per_s

    def __str__(self) -> str:
        """ "3.1 GiB of 14.2 GiB, 95.0 MiB/s, 1m59s left"."""
        parts = [f"{size(self.done_bytes)} of {size(self.total_bytes)}" if self.total_bytes else size(self.done_bytes)]
        if self.bytes_per_s:
            parts.append(f"{size(round(self.bytes_per_s))}/s")
        if self.left_s:
            parts.append(f"{duration(max(round(self.left_s), 1))} left")
        return ", ".join(parts)

    @property
    def brief(self) -> str:
        """ "3.1/14.2 GiB, 95.0 MiB/s, 1m59s left", for narrow terminals."""
        done, total = size(self.done_bytes), size(self.total_bytes) if self.total_bytes else ""
        figure, _, unit = done.partition(" ")
        if total.endswith(f" {unit}"):
            done = figure
        return str(self).replace(f"{size(self.done_bytes)} of {total}", f"{done}/{total}", 1)


@dataclass
class _Gauge:
    """Bytes over time. `total_bytes`: what was told, or else estimated."""

    total_bytes: int | None = None
    done_bytes: int = 0
    seen: deque[tuple[float, int]] = field(default_factory=deque)

    def take(self, done_bytes: int, now_s: float) -> None:
        if done_bytes < self.done_bytes:  # it was begun anew
            self.seen.clear()
        self.done_bytes = done_bytes
        self.seen.append((now_s, done_bytes))
        while len(self.seen) > 2 and self.seen[1][0] <= now_s - WINDOW_S:
            self.seen.popleft()

    def meter(self) -> Meter:
        (since_s, before), (now_s, after) = (self.seen[0], self.seen[-1]) if self.seen else ((0.0, 0), (0.0, 0))
        rate = (after - before) / (now_s - since_s) if now_s > since_s and after > before else None
        return Meter(self.done_bytes, self.total_bytes, rate)


class Pulls:
    """The pulls of one apply. Feed it every event; `now_s` are seconds of a clock that does not go back."""

    def __init__(self) -> None:
        self._gauges: dict[str, _Gauge] = {}
        self._all = _Gauge()

    def take(self, event: Event, now_s: float) -> None:
        """Keep what the event says of a pull."""
        if isinstance(event, RunStarted):
            pulls = (step for step in event.plan.steps if step.op in BRINGS)
            self._gauges = {step.id: _Gauge(step.estimate_bytes) for step in pulls}
        elif isinstance(event, StepStarted) and event.step.op in BRINGS:
            self._gauges.setdefault(event.step.id, _Gauge(event.step.estimate_bytes)).take(0, now_s)
        elif isinstance(event, StepProgress) and event.step.op in BRINGS and event.done_bytes is not None:
            gauge = self._gauges.setdefault(event.step.id, _Gauge(event.step.estimate_bytes))
            gauge.total_bytes = event.total_bytes or gauge.total_bytes
            gauge.take(event.done_bytes, now_s)
        elif isinstance(event, StepEnded) and event.step.id in self._gauges:
            gauge = self._gauges[event.step.id]
            gauge.total_bytes = gauge.done_bytes  # what did not have to come, or is given up, counts no more
        else:
            return
        self._all.take(sum(gauge.done_bytes for gauge in self._gauges.values()), now_s)

    @property
    def count(self) -> int:
        """How many pulls there are in all."""
        return len(self._gauges)

    def of(self, step: Step) -> Meter:
        """How far one pull is."""
        return self._gauges[step.id].meter()

    def total(self) -> Meter:
        """How far all of them are together."""
        totals = [gauge.total_bytes for gauge in self._gauges.values()]
        known = None if None in totals else sum(total for total in totals if total is not None)
        return Meter(self._all.done_bytes, known or None, self._all.meter().bytes_per_s)


class PullLines:
    """The pulls of one apply as plain lines, for logs and pipes: some lines a pull, however long it takes."""

    def __init__(self) -> None:
        self._pulls = Pulls()
        self._told: dict[str, tuple[float, int]] = {}

    def lines(self, event: Event, now_s: float) -> Iterator[str]:
        """What is to be said now."""
        self._pulls.take(event, now_s)
        if isinstance(event, StepStarted):
            self._told[event.step.id] = now_s, 0
        if not isinstance(event, StepProgress) or event.step.op not in BRINGS or event.done_bytes is None:
            return
        told_s, told_bytes = self._told.setdefault(event.step.id, (now_s, 0))
        step = LINE_SHARE * (event.total_bytes or 0)
        if now_s - told_s >= LINE_S and event.done_bytes - told_bytes >= step:
            self._told[event.step.id] = now_s, event.done_bytes
            doing = f", {event.doing}" if event.doing else ""
            yield one_line(f"  ... {step_words(event.step)}: {self._pulls.of(event.step)}{doing}")
