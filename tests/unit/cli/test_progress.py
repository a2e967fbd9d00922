"""What an apply looks like while it goes, on a terminal."""

import io

from rich.console import Console
from rich.progress import Progress, TextColumn

from reconciler.cli.progress import _columns, _Table
from reconciler.core.events import RunStarted, StepEnded, StepProgress, StepStarted
from reconciler.core.machine import Status
from tests.unit.views.test_pull_meter import GIB, made


def test_each_pull_has_a_line_and_all_of_them_one_while_any_runs() -> None:
    found, first, second = made()
    console = Console(file=io.StringIO(), force_terminal=True, width=160)
    progress = Progress(TextColumn("{task.description}"), console=console)
    table = _Table(console, progress)
    table.take(RunStarted("r", found))
    assert [] == progress.tasks
    table.take(StepStarted(first))
    table.take(StepStarted(second))
    table.take(StepProgress(first, "downloading [x]", 2 * GIB, 10 * GIB))
    shown = {task.description: (task.completed, task.total) for task in progress.tasks}
    assert {
        "pulling ghcr.io/owner/engine on n1": (2 * GIB, 10 * GIB),
        "pulling ghcr.io/owner/engine on n2": (0, 10 * GIB),
        "all images": (2 * GIB, 20 * GIB),
    } == shown
    assert "2.0 GiB of 10.0 GiB" in progress.tasks[0].fields["news"]
    table.take(StepEnded(first, Status.APPLIED, "", 1.0))
    table.take(StepEnded(second, Status.FAILED, "no space left", 1.0))
    assert [] == progress.tasks


def test_eighty_columns_show_rate_and_time_left() -> None:
    found, first, _ = made()
    output = io.StringIO()
    console = Console(file=output, force_terminal=True, width=80)
    progress = Progress(*_columns(console), console=console, auto_refresh=False)
    table = _Table(console, progress)
    with progress:
        table.take(RunStarted("r", found))
        table.take(StepStarted(first))
        for number in range(2, 5):
            table.take(StepProgress(first, "downloading", number * GIB, 10 * GIB))
        [line] = [task.fields["news"] for task in progress.tasks if " on n1" in task.description]
        [words] = [task.description for task in progress.tasks if " on n1" in task.description]
        progress.update(progress.tasks[0].id, news="3.1/14.2 GiB, 95.0 MiB/s, 1m59s left")
        progress.refresh()
    assert line.startswith("4.0/10.0 GiB, ")
    assert "pulling engine on n1" == words
    assert "95.0 MiB/s, 1m59s left" in output.getvalue()
