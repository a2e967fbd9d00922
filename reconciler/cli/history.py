"""`fleet history`: what was done, by whom, and how it ended."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from reconciler.cli.wiring import DEFAULT_SPEC, AsJson, SpecFile, inventory, say, say_json

if TYPE_CHECKING:
    from reconciler.history import PastRun

HELP = """Show what was done to the fleet: the last runs, newest first.

A line has the run's id, when it began (local time), who began it where, the command, the commit of the spec, the plan,
how it ended and which placements it touched. An unfinished run is going on, or it died: the next apply settles what it
left open. Reads the record only; no node is asked.

With --durations it shows how long things took instead: pulls, preflights, stops and boots, by model, image and kind of
node, from the last five times of each. That is what `fleet plan` expects of the next time.

For example: fleet history --limit 5 rack-a/qwen

Or: fleet history --durations qwen
"""

Limit = Annotated[int, typer.Option("--limit", "-n", min=1, metavar="N", help="Show so many runs.")]
PlacementName = Annotated[
    str | None, typer.Argument(metavar="[PLACEMENT]", help="Only runs that touched it: CLUSTER/LANE, or a lane.")
]
Durations = Annotated[bool, typer.Option("--durations", help="Show how long things took, not what was done.")]
SHORT = 8
"""So many letters of a commit or a plan tell it from others."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("history", help=HELP)(history)


def history(
    placement: PlacementName = None,
    file: SpecFile = DEFAULT_SPEC,
    limit: Limit = 20,
    durations: Durations = False,
    as_json: AsJson = False,
) -> None:
    """Read, show."""
    from reconciler.history import location, past_runs

    if durations:
        _durations(file, placement, as_json=as_json)
        return
    found = past_runs(location(inventory(file)), limit, placement)
    if as_json:
        say_json(found)
    elif found:
        say("".join(f"{_line(run)}\n" for run in found))
    else:
        say(f"no run {f'of {placement} ' if placement else ''}is recorded{_meant(file, placement)}\n")


def _meant(file: Path, placement: str | None) -> str:
    """What may be meant instead, of all that is recorded: a placement that was never touched is no fault."""
    from reconciler.history import RUNS_SEARCHED, location, past_runs
    from specs import did_you_mean

    if placement is None:
        return ""
    gangs = {gang for run in past_runs(location(inventory(file)), RUNS_SEARCHED) for gang in run.touched}
    hint = did_you_mean(placement, sorted(gangs | {gang.rpartition("/")[2] for gang in gangs}))
    return hint and f"; {hint}"


def _durations(file: Path, placement: str | None, *, as_json: bool) -> None:
    from reconciler.history import known_durations, location
    from reconciler.views.durations_text import durations_text

    found = known_durations(location(inventory(file)), placement)
    if as_json:
        say_json(found)
    else:
        of = f" of {placement}" if placement else ""
        say(durations_text(found) or f"no duration{of} is recorded yet: an apply records what it does\n")


def _line(run: "PastRun") -> str:
    from datetime import datetime

    when = datetime.fromtimestamp(run.started_at).astimezone().strftime("%Y-%m-%d %H:%M")
    commit = f"commit {run.commit[:SHORT]}" if run.commit else "no commit"
    left = f" ({run.open} left open)" if run.open else ""
    numbers = dict(run.revisions)
    named = (f"{gang} (revision {numbers[gang]})" if gang in numbers else gang for gang in run.touched)
    touched = " ".join(named) or "nothing touched"
    plan = f"plan {run.plan_id[:SHORT]}"
    return f"{run.id}  {when}  {run.who}  {run.command}  {commit}  {plan}  {run.outcome}{left}: {touched}"
