"""`fleet status`: what runs, on three axes."""

import time
from typing import TYPE_CHECKING, Annotated

import typer

from reconciler.cli.wiring import (
    DEFAULT_DEADLINE_S,
    DEFAULT_SPEC,
    AsJson,
    Deadline,
    SpecFile,
    load,
    run,
    say,
    say_json,
    warn,
    with_fleet,
)

if TYPE_CHECKING:
    from reconciler.core.status import FleetStatus
    from reconciler.fleet import Fleet

Probe = Annotated[bool, typer.Option("--probe", help="Put the lanes' probe questions, too.")]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("status", help="Show how each lane and rank is, and where it answers.")(status)


def status(
    context: typer.Context,
    file: SpecFile = DEFAULT_SPEC,
    as_json: AsJson = False,
    probe: Probe = False,
    deadline: Deadline = DEFAULT_DEADLINE_S,
) -> None:
    """Observe, ask the heads, show."""
    from reconciler.core.outcome import Exit

    async def work(fleet: "Fleet") -> "FleetStatus":
        return await fleet.status(await fleet.observe(deadline), probe=probe, now_s=time.time())

    fleet = load(context, file)
    found = _with_holds(fleet, run(context, with_fleet(fleet, work)))
    if as_json:
        say_json(found)
    else:
        from reconciler.views.status_text import status_text

        say(status_text(found))
    raise typer.Exit(Exit.UNREACHABLE if found.unknown else Exit.OK)


def _with_holds(fleet: "Fleet", found: "FleetStatus") -> "FleetStatus":
    """What is recorded of holds and quarantine; the status is the same when that cannot be read."""
    import state
    from reconciler import holds

    try:
        return holds.shown(fleet, found, holds.recorded(fleet, time.time()))
    except state.StateError as error:
        warn(f"holds are not shown: {error}")
        return found
