"""`fleet down`: stop and remove lanes, whatever the spec says of them."""

from typing import TYPE_CHECKING, Annotated

import typer

from reconciler.cli.apply import Yes
from reconciler.cli.carrying import carry_out
from reconciler.cli.recording import Events
from reconciler.cli.wiring import DEFAULT_DEADLINE_S, DEFAULT_SPEC, AsJson, Deadline, SpecFile, load, run, with_fleet

if TYPE_CHECKING:
    from reconciler.core.plan import Plan
    from reconciler.fleet import Fleet

Lane = Annotated[str | None, typer.Argument(help="The lane to take down.")]
All = Annotated[bool, typer.Option("--all", help="Take down every lane of this fleet, wanted or not.")]

HELP = """Stop and remove a lane, or all of them. `fleet apply` brings wanted ones back.

The plan is shown first. For good: take the lane out of `placements`, then `fleet apply`.

For example: fleet down qwen
"""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("down", help=HELP)(down)


def down(
    context: typer.Context,
    lane: Lane = None,
    every: All = False,
    file: SpecFile = DEFAULT_SPEC,
    yes: Yes = False,
    as_json: AsJson = False,
    deadline: Deadline = DEFAULT_DEADLINE_S,
    events: Events = None,
) -> None:
    """Plan with the lane placed nowhere, and apply only what concerns it."""
    if (lane is None) == (not every):
        raise typer.BadParameter("name one lane, or say --all")
    fleet = load(context, file)

    async def work(fleet: "Fleet") -> int:
        observed = await fleet.observe(deadline)
        placed = frozenset(gang.lane for gang in fleet.desired.gangs)
        made = fleet.without(placed).plan(observed, allow_empty=True)
        reduced = made if lane is None else _only(made, lane)
        if lane is not None and not reduced.steps:
            _must_exist(fleet, lane)
        return await carry_out(fleet.without(placed), reduced, yes=yes, as_json=as_json, command="down")

    raise typer.Exit(run(context, with_fleet(fleet, work)))


def _only(made: "Plan", lane: str) -> "Plan":
    """The part of a plan that stops and removes one lane. Stops of unwanted gangs depend on no other gang."""
    from reconciler.core.plan import only_gangs

    return only_gangs(made, lambda gang: gang.partition("/")[2] == lane)


def _must_exist(fleet: "Fleet", lane: str) -> None:
    if lane not in fleet.spec.lanes:
        known = ", ".join(sorted(fleet.spec.lanes)) or "none"
        raise typer.BadParameter(f"no lane named '{lane}' (known: {known})")
