"""`fleet plan`: the difference between the spec and the nodes. Changes nothing."""

import time
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from reconciler.cli.notes import tell_of_secrets
from reconciler.cli.wiring import (
    DEFAULT_DEADLINE_S,
    DEFAULT_SPEC,
    AsJson,
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
    from reconciler.core.observed import Observed
    from reconciler.core.plan import Plan
    from reconciler.fleet import Fleet

Out = Annotated[Path | None, typer.Option("--out", metavar="FILE", help="Write the plan as JSON to a file, too.")]
Detailed = Annotated[bool, typer.Option("--detailed-exitcode", help="Exit with 2 when there is something to do.")]


class Format(StrEnum):
    """How a plan is printed."""

    TEXT = "text"
    JSON = "json"
    MARKDOWN = "markdown"


AsFormat = Annotated[Format, typer.Option("--format", help="Text for people, JSON for programs, Markdown for forges.")]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("plan", help="Show what `fleet apply` would do, and why. Changes nothing.")(plan)


def plan(
    context: typer.Context,
    file: SpecFile = DEFAULT_SPEC,
    as_json: AsJson = False,
    output: AsFormat = Format.TEXT,
    out: Out = None,
    detailed_exitcode: Detailed = False,
    deadline: Deadline = DEFAULT_DEADLINE_S,
) -> None:
    """Observe, plan, show."""
    from reconciler.core.outcome import plan_exit
    from reconciler.core.plan import plan_json

    fleet = load(context, file)
    began_s = time.monotonic()

    async def look(fleet: "Fleet") -> "Observed":
        return await fleet.observe(deadline)

    observed = run(context, with_fleet(fleet, look))
    tell_of_secrets(fleet, observed)
    made = fleet.plan(observed, commit=commit_of(file))
    if out is not None:
        write_whole(out, plan_json(made) + "\n")
    say(rendered(fleet, made, Format.JSON if as_json else output, time.monotonic() - began_s))
    if output is Format.TEXT and not as_json and made.steps and not made.refusals:
        say("Run `fleet apply` to carry it out.\n")
    raise typer.Exit(plan_exit(made, changes_count=detailed_exitcode))


def rendered(fleet: "Fleet", made: "Plan", output: Format, observed_s: float | None = None) -> str:
    """The plan in the wanted format."""
    from reconciler.core.plan import plan_json

    if output is Format.JSON:
        return plan_json(made) + "\n"
    boots = recorded_boots(fleet, made)
    if output is Format.MARKDOWN:
        from reconciler.views.plan_markdown import plan_markdown

        return plan_markdown(made, boots)
    from reconciler.views.plan_text import plan_text

    return plan_text(made, boots, observed_s)


def recorded_boots(fleet: "Fleet", made: "Plan") -> dict[str, tuple[float, ...]]:
    """How long earlier boots took. History only: when it cannot be read, the plan is the same without it."""
    import state

    try:
        return {outage.gang: fleet.boots(outage.gang) for outage in made.outages}
    except state.StateError as error:
        warn(f"no boot times in this plan: {error}")
        return {}
