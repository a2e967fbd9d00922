"""Shows an apply as it goes: a live table on a terminal, plain lines elsewhere."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from reconciler.cli.wiring import mute
from reconciler.core.events import Event, StepEnded, StepProgress, StepStarted
from reconciler.views.event_text import event_lines, step_words
from reconciler.views.words import one_line, size


@contextmanager
def reporter(*, quiet: bool) -> Iterator[Callable[[Event], None]]:
    """A function to feed with events while the context lasts."""
    if quiet:
        yield lambda event: None
    elif sys.stdout.isatty():
        with _live() as on_event:
            yield on_event
    else:
        yield _plain


def _plain(event: Event) -> None:
    try:
        for line in event_lines(event):
            sys.stdout.write(line + "\n")
        sys.stdout.flush()
    except OSError:  # a reader that went away or a full disk is no reason to leave a lane half booted
        mute()


NEWS_STARTS_AT = 60
"""Columns that the rest of a line takes, about: news is cut so that a line stays a line."""


def _news(event: StepProgress) -> str:
    """Bytes, where it is about bytes, and what is being done."""
    if event.done_bytes is None:
        return one_line(event.doing)
    total = f" of {size(event.total_bytes)}" if event.total_bytes else ""
    return one_line(f"{size(event.done_bytes)}{total} {event.doing}")


@contextmanager
def _live() -> Iterator[Callable[[Event], None]]:
    """Ended steps scroll by; running ones stay below with time, bytes and news."""
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

    console = Console(highlight=False)
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(20),
        TimeElapsedColumn(),
        TextColumn("{task.fields[news]}"),
    )
    progress = Progress(*columns, console=console, transient=True)
    tasks: dict[str, TaskID] = {}

    def on_event(event: Event) -> None:
        if isinstance(event, StepStarted):
            tasks[event.step.id] = progress.add_task(escape(step_words(event.step)), total=None, news="")
        elif isinstance(event, StepProgress) and event.step.id in tasks:
            news = escape(_news(event)[: max(console.width - NEWS_STARTS_AT, 20)])
            progress.update(tasks[event.step.id], completed=event.done_bytes or 0, total=event.total_bytes, news=news)
        elif isinstance(event, StepEnded) and event.step.id in tasks:
            progress.remove_task(tasks.pop(event.step.id))
        if not isinstance(event, StepStarted):
            for line in event_lines(event):
                console.print(line, markup=False)

    with progress:
        yield on_event
