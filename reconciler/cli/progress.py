"""Shows an apply as it goes: a live table on a terminal, plain lines elsewhere."""

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from reconciler.cli.wiring import mute
from reconciler.core.durations import Expected
from reconciler.core.estimates import NOTHING
from reconciler.core.events import Event, StepEnded, StepProgress, StepStarted
from reconciler.core.plan import BRINGS, Step
from reconciler.views.event_text import brief_words, event_lines, expected_words
from reconciler.views.pull_meter import Meter, PullLines, Pulls
from reconciler.views.words import one_line

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, ProgressColumn, TaskID


Expectations = Mapping[str, Expected]
"""By a step's id."""


@contextmanager
def reporter(*, quiet: bool, expected: Expectations = NOTHING.steps) -> Iterator[Callable[[Event], None]]:
    """A function to feed with events while the context lasts. `expected`: how long steps take, where that is known."""
    if quiet:
        yield lambda event: None
    elif sys.stdout.isatty():
        with _live(expected) as on_event:
            yield on_event
    else:
        yield _Plain(expected).take


class _Plain:
    """Lines as they come; of long pulls one now and then."""

    def __init__(self, expected: Expectations) -> None:
        self._pulls = PullLines()
        self._expected = expected

    def take(self, event: Event) -> None:
        try:
            for line in (*self._pulls.lines(event, time.monotonic()), *event_lines(event, self._expected)):
                sys.stdout.write(line + "\n")
            sys.stdout.flush()
        except OSError:  # a reader that went away or a full disk is no reason to leave a lane half booted
            mute()


WIDE = 100
"""From so many columns on, bars are long and figures spelled out."""
NEWS_WIDTH = 38
"""Columns of bytes, rate and time left in their brief form: the words before them are shortened to leave so many."""


@contextmanager
def _live(expected: Expectations) -> Iterator[Callable[[Event], None]]:
    """Ended steps scroll by; running ones stay below with time, bytes and news."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(highlight=False)
    progress = Progress(*_columns(console), console=console, transient=True)
    with progress:
        yield _Table(console, progress, expected).take


def _columns(console: "Console") -> "tuple[ProgressColumn, ...]":
    from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn

    return (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(_bar_width(console.width)),
        TimeElapsedColumn(),
        TextColumn("{task.fields[news]}"),
    )


def _bar_width(columns: int) -> int:
    return 20 if columns >= WIDE else 6


class _Table:
    """A line for each running step, and one for all pulls together where there are several."""

    def __init__(self, console: "Console", progress: "Progress", expected: Expectations = NOTHING.steps) -> None:
        self._expected = expected
        self._console = console
        self._progress = progress
        self._pulls = Pulls()
        self._tasks: dict[str, TaskID] = {}
        self._running: set[str] = set()
        self._total: TaskID | None = None

    def take(self, event: Event) -> None:
        self._pulls.take(event, time.monotonic())
        if isinstance(event, StepStarted):
            self._start(event.step)
        elif isinstance(event, StepProgress) and event.step.id in self._tasks:
            self._tell(event)
        elif isinstance(event, StepEnded) and event.step.id in self._tasks:
            self._progress.remove_task(self._tasks.pop(event.step.id))
            self._running.discard(event.step.id)
        self._sum_up()
        if not isinstance(event, StepStarted):
            for line in event_lines(event):
                self._console.print(line, markup=False)

    def _start(self, step: Step) -> None:
        news = expected_words(self._expected.get(step.id)).strip(" ()")
        self._tasks[step.id] = self._add(brief_words(step, self._words_width), news)
        if step.op in BRINGS:
            self._running.add(step.id)
            self._show(self._tasks[step.id], self._pulls.of(step))

    @property
    def _words_width(self) -> int:
        """What the spinner, the bar, the clock, the gaps and the figures leave."""
        return max(self._console.width - NEWS_WIDTH - _bar_width(self._console.width) - len("s 0:00:00 ") - 3, 16)

    def _add(self, words: str, news: str = "") -> "TaskID":
        from rich.markup import escape

        return self._progress.add_task(escape(one_line(words)), total=None, news=news)

    def _tell(self, event: StepProgress) -> None:
        task = self._tasks[event.step.id]
        if event.step.op in BRINGS and event.done_bytes is not None:
            self._show(task, self._pulls.of(event.step), event.doing)
        else:
            self._progress.update(task, news=self._fitting(event.doing))

    def _show(self, task: "TaskID", meter: Meter, doing: str = "") -> None:
        figures = str(meter) if self._console.width >= WIDE else meter.brief
        news = self._fitting(f"{figures} {doing}".rstrip())
        self._progress.update(task, completed=meter.done_bytes, total=meter.total_bytes, news=news)

    def _fitting(self, text: str) -> str:
        from rich.markup import escape

        longest = max((len(task.description) for task in self._progress.tasks), default=0)
        rest = self._console.width - longest - _bar_width(self._console.width) - len("s 0:00:00 ") - 3
        return escape(one_line(text)[: max(rest, 20)])

    def _sum_up(self) -> None:
        """The line for all pulls, while any of them runs."""
        if self._running and self._pulls.count > 1:
            if self._total is None:
                self._total = self._add("all images")
            self._show(self._total, self._pulls.total())
        elif self._total is not None:
            self._progress.remove_task(self._total)
            self._total = None
