"""`fleet drift`: a read-only report for people and for cron."""

from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from reconciler.cli.wiring import (
    DEFAULT_DEADLINE_S,
    DEFAULT_SPEC,
    Deadline,
    SpecFile,
    commit_of,
    load,
    run,
    say,
    warn,
    with_fleet,
    write_whole,
)

if TYPE_CHECKING:
    from reconciler.core.drift import Report
    from reconciler.core.drift.failing import FailOn
    from reconciler.drift_job import DriftJob
    from reconciler.fleet import Fleet
    from reconciler.notify import Address


class Format(StrEnum):
    """How findings are printed."""

    TEXT = "text"
    JSON = "json"
    MARKDOWN = "markdown"
    HTML = "html"


DEFAULT_WITHIN_S = 120.0

AsFormat = Annotated[
    Format, typer.Option("--format", help="Text, JSON, Markdown, or one HTML page that needs no network.")
]
AsJson = Annotated[bool, typer.Option("--json", help="The same as --format json.")]
Out = Annotated[Path | None, typer.Option("--out", metavar="FILE", help="Write the report to a file instead.")]
Within = Annotated[
    float,
    typer.Option("--within", min=1, metavar="SECONDS", help="Time for all of it: then what is known is reported."),
]
FailOnWords = Annotated[
    list[str] | None,
    typer.Option(
        "--fail-on",
        metavar="CLASS,...",
        help="Findings that somebody must look at: by class (intent, config, identity, runtime, host) or severity"
        " (outage, degraded, notice: these and worse). Others are reported, and change neither exit code nor news."
        " Default: all.",
    ),
]
Probe = Annotated[bool, typer.Option("--probe", help="Put the lanes' probe questions, too.")]
NoRecord = Annotated[
    bool,
    typer.Option("--no-record", help="Leave nothing in the state: the next look does not know of this one."),
]
Metrics = Annotated[
    Path | None,
    typer.Option("--metrics", metavar="FILE", help="Write Prometheus metrics for the textfile collector."),
]
Notify = Annotated[
    list[str] | None,
    typer.Option(
        "--notify",
        metavar="URL",
        envvar="FLEET_NOTIFY",
        show_envvar=True,
        help="Tell this address of news, by apprise (extra `notify`). A URL is a secret: the variable and a file show"
        " it to nobody.",
    ),
]
NotifyFile = Annotated[
    Path | None, typer.Option("--notify-file", metavar="FILE", help="Tell the addresses in this file, one a line.")
]

HELP = """Report what is not as wanted, for people and for cron. Changes nothing on the nodes.

Each finding has its class, its place, what was expected, what was found and what `fleet apply` would do. Exit codes: 0
all is as wanted, 2 drift, 4 some nodes could not be read, or not in time (also with drift), 1 the look failed.

For example: fleet drift --format markdown --out drift.md --fail-on outage,config --metrics /var/lib/metrics/fleet.prom
"""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("drift", help=HELP)(drift)


def drift(
    context: typer.Context,
    file: SpecFile = DEFAULT_SPEC,
    output: AsFormat = Format.TEXT,
    as_json: AsJson = False,
    out: Out = None,
    fail_on: FailOnWords = None,
    deadline: Deadline = DEFAULT_DEADLINE_S,
    within: Within = DEFAULT_WITHIN_S,
    probe: Probe = False,
    no_record: NoRecord = False,
    notify: Notify = None,
    notify_file: NotifyFile = None,
    metrics: Metrics = None,
) -> None:
    """Look, compare, report; then what the report is for: the record, news, metrics."""
    from reconciler.cli.overtime import bounded
    from reconciler.core.drift.failing import exit_of
    from reconciler.drift_job import DriftJob, Request

    counting = _counting(fail_on or [])
    addresses = _addresses(notify or [], notify_file)
    emitted = partial(_emitted, counting=counting, output=Format.JSON if as_json else output, out=out)

    async def work(fleet: "Fleet") -> "tuple[Report, OSError | None]":
        job = DriftJob(fleet, Request(deadline, within, probe, not no_record, partial(commit_of, fleet)))
        report = await job.look()
        failure = emitted(report)
        await job.keep(report)
        await job.tell(report, counting.counted(report.findings), addresses)
        _finish(job, report, metrics)
        return report, failure

    with bounded(within):
        fleet = load(context, file)
        report, failure = run(context, with_fleet(fleet, work))
    if failure is not None:
        raise failure
    raise typer.Exit(exit_of(report, counting))


def _counting(words: list[str]) -> "FailOn":
    from reconciler.core.drift.failing import fail_on

    try:
        return fail_on(words)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--fail-on") from None


def _addresses(urls: list[str], file: Path | None) -> "tuple[Address, ...]":
    """Who is told. apprise is loaded only where somebody is. Raises `OSError` and `NotifyError`."""
    lines = [] if file is None else [line.strip() for line in file.read_text(encoding="utf-8").splitlines()]
    named = [*urls, *(line for line in lines if line and not line.startswith("#"))]
    if not named:
        return ()
    from reconciler.notify import addresses

    return addresses(named)


def _emitted(report: "Report", counting: "FailOn", output: Format, out: Path | None) -> OSError | None:
    """The report where it belongs. A disk that is full is no reason to tell nobody: it is raised at the end."""
    text = _rendered(report, counting, output)
    try:
        if out is None:
            say(text)
        else:
            write_whole(out, text)
    except OSError as error:
        return error
    return None


def _rendered(report: "Report", counting: "FailOn", output: Format) -> str:
    """The page alone tells the exit code, and so wants to know what counts for it."""
    if output is Format.HTML:
        from reconciler.views.drift_html import drift_html

        return drift_html(report, counting)
    if output is Format.TEXT:
        from reconciler.views.drift_text import drift_text as view
    elif output is Format.JSON:
        from reconciler.views.drift_json import drift_json as view
    else:
        from reconciler.views.drift_markdown import drift_markdown as view
    return view(report)


def _finish(job: "DriftJob", report: "Report", metrics: Path | None) -> None:
    """Metrics, when all else is done: they tell how long it took. Then what did not work, once each."""
    if metrics is not None:
        from reconciler.views.drift_metrics import drift_metrics

        try:
            before = metrics.read_text(encoding="utf-8", errors="replace") if metrics.is_file() else ""
            write_whole(metrics, drift_metrics(report, job.took_s, before), mode=0o644)
        except OSError as error:
            job.notes.append(f"no metrics are written: {error.filename}: {(error.strerror or str(error)).lower()}")
    for note in (*(f"there was no time to see {what}" for what in report.missing), *dict.fromkeys(job.notes)):
        warn(note)
