"""`fleet plan`: the difference between the spec and the nodes. Changes nothing."""

import shlex
import time
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from reconciler.cli.notes import tell_of_secrets, tell_of_suspension
from reconciler.cli.targets import Clusters, Lanes, Nodes, targets
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
)

if TYPE_CHECKING:
    from reconciler.core.estimates import Estimates
    from reconciler.core.observed import Observed
    from reconciler.core.plan import Plan
    from reconciler.core.targets import Targets
    from reconciler.fleet import Fleet

Out = Annotated[
    Path | None, typer.Option("--out", metavar="FILE", help="Save the plan, too: `fleet apply FILE` carries it out.")
]
Detailed = Annotated[bool, typer.Option("--detailed-exitcode", help="Exit with 2 when there is something to do.")]


class Format(StrEnum):
    """How a plan is printed."""

    TEXT = "text"
    JSON = "json"
    MARKDOWN = "markdown"


AsFormat = Annotated[Format, typer.Option("--format", help="Text for people, JSON for programs, Markdown for forges.")]


HELP = """Show what `fleet apply` would do, and why. Changes nothing.

A plan that is saved with --out is carried out by `fleet apply FILE` exactly as it is, once, and only while what it
rests on has not changed. With --lane, --cluster or --node it is about these only, and about what hangs together with
them: names of one kind add up, kinds restrict each other. It says what comes along, and why.

For example: fleet plan --lane qwen --out tonight.plan
"""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("plan", help=HELP)(plan)


def plan(
    context: typer.Context,
    file: SpecFile = DEFAULT_SPEC,
    as_json: AsJson = False,
    output: AsFormat = Format.TEXT,
    out: Out = None,
    detailed_exitcode: Detailed = False,
    lane: Lanes = None,
    cluster: Clusters = None,
    node: Nodes = None,
    deadline: Deadline = DEFAULT_DEADLINE_S,
) -> None:
    """Observe, plan, show."""
    from reconciler.core.outcome import plan_exit
    from reconciler.core.targets import narrowed
    from reconciler.core.withhold import going, stands_in_the_way

    fleet = load(context, file)
    asked = targets(fleet, lane, cluster, node)
    began_s = time.monotonic()

    async def look(fleet: "Fleet") -> "Observed":
        return await fleet.observe(deadline)

    observed = run(context, with_fleet(fleet, look))
    tell_of_secrets(fleet, observed)
    made = narrowed(fleet.plan(observed, commit=commit_of(fleet)), fleet.desired, asked)
    if out is not None:
        _save(out, made, observed)
    made = but_withheld(fleet, made)
    say(rendered(fleet, made, Format.JSON if as_json else output, time.monotonic() - began_s))
    if output is Format.TEXT and not as_json and made.steps and not stands_in_the_way(made) and not made.forbidden:
        way = f"Run `fleet apply{_words(out, asked)}` to carry it out."
        say(f"{way if going(made).steps else 'None of it is carried out now: see what is withheld.'}\n")
    raise typer.Exit(plan_exit(made, changes_count=detailed_exitcode))


def _save(out: Path, made: "Plan", observed: "Observed") -> None:
    from reconciler import saved

    saved.write(out, saved.save(made, observed, time.time()))


def _words(out: Path | None, asked: "Targets") -> str:
    """What `fleet apply` needs to be told to do the same."""
    if out is not None:
        return f" {shlex.quote(str(out))}"
    kinds = (("lane", asked.lanes), ("cluster", asked.clusters), ("node", asked.nodes))
    return "".join(f" --{kind} {shlex.quote(name)}" for kind, names in kinds for name in sorted(names))


def but_withheld(fleet: "Fleet", made: "Plan") -> "Plan":
    """The plan with what is held or in quarantine now, and what policies object to.

    What is recorded and cannot be read leaves the plan as it is. Of a plan with nothing to do nothing is withheld: what
    is recorded is not read, and no policy is asked.
    """
    if not made.steps and not made.refusals:
        return made
    import state
    from reconciler import holds

    try:
        known = holds.recorded(fleet, time.time())
        tell_of_suspension(known)
        made = holds.withheld(made, known)
    except state.StateError as error:
        warn(f"holds are not shown in this plan: {error}")
    return fleet.judged(made, time.time())


def rendered(fleet: "Fleet", made: "Plan", output: Format, observed_s: float | None = None) -> str:
    """The plan in the wanted format."""
    from reconciler.core.plan import plan_json

    estimates = recorded_estimates(fleet, made)
    if output is Format.JSON:
        return plan_json(made, {"estimates": estimates}) + "\n"
    boots = recorded_boots(fleet, made)
    if output is Format.MARKDOWN:
        from reconciler.views.plan_markdown import plan_markdown

        return plan_markdown(made, boots, estimates)
    from reconciler.views.plan_text import plan_text

    return plan_text(made, boots, observed_s, estimates)


def recorded_estimates(fleet: "Fleet", made: "Plan") -> "Estimates":
    """What it is expected to take. History only, as boot times are."""
    from reconciler.core.estimates import NOTHING

    if not made.steps:
        return NOTHING
    import state

    try:
        return fleet.estimates(made)
    except state.StateError as error:
        warn(f"no estimates in this plan: {error}")
        return NOTHING


def recorded_boots(fleet: "Fleet", made: "Plan") -> dict[str, tuple[float, ...]]:
    """How long earlier boots took. History only: when it cannot be read, the plan is the same without it."""
    import state

    try:
        return {outage.gang: fleet.boots(outage.gang) for outage in made.outages}
    except state.StateError as error:
        warn(f"no boot times in this plan: {error}")
        return {}
