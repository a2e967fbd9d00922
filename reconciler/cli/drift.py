"""`fleet drift`: a read-only report for cron."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from reconciler.cli.notes import tell_of_secrets
from reconciler.cli.wiring import (
    DEFAULT_DEADLINE_S,
    DEFAULT_SPEC,
    Deadline,
    SpecFile,
    load,
    run,
    say,
    with_fleet,
    write_whole,
)

if TYPE_CHECKING:
    from reconciler.core.drift import Report
    from reconciler.core.observed import Observed
    from reconciler.fleet import Fleet


class Format(StrEnum):
    """How findings are printed."""

    TEXT = "text"
    JSON = "json"
    MARKDOWN = "markdown"


AsFormat = Annotated[Format, typer.Option("--format", help="Text, JSON or Markdown.")]
AsJson = Annotated[bool, typer.Option("--json", help="The same as --format json.")]
Out = Annotated[Path | None, typer.Option("--out", metavar="FILE", help="Write the report to a file instead.")]

HELP = """Report what is not as wanted, for cron. Changes nothing.

Each finding has its place, what was expected, what was found and what `fleet apply` would do. Exit codes: 0 all is as
wanted, 2 drift, 4 some nodes could not be read (also with drift).

For example: fleet drift --format markdown --out drift.md
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
    deadline: Deadline = DEFAULT_DEADLINE_S,
) -> None:
    """Observe, compare, report."""

    async def work(fleet: "Fleet") -> "tuple[Observed, Report]":
        observed = await fleet.observe(deadline)
        return observed, await fleet.drift(observed)

    fleet = load(context, file)
    observed, made = run(context, with_fleet(fleet, work))
    tell_of_secrets(fleet, observed)
    report = _rendered(made, Format.JSON if as_json else output)
    if out is None:
        say(report)
    else:
        write_whole(out, report)
    raise typer.Exit(_exit(made))


def _rendered(report: "Report", output: Format) -> str:
    if output is Format.TEXT:
        from reconciler.views.drift_text import drift_text as view
    elif output is Format.JSON:
        from reconciler.views.drift_json import drift_json as view
    else:
        from reconciler.views.drift_markdown import drift_markdown as view
    return view(report)


def _exit(report: "Report") -> int:
    """A cron job has to tell drift from not having been able to look."""
    from reconciler.core.drift.failing import ANY, exit_of

    return exit_of(report, ANY)
