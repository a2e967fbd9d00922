"""`fleet status`: what runs, on three axes."""

import time
from typing import TYPE_CHECKING, Annotated

import typer

from reconciler.cli.targets import Names, meant
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
    from reconciler.history import Remembered

Probe = Annotated[bool, typer.Option("--probe", help="Put the lanes' probe questions, too.")]

HELP = """Show how each lane and rank is, and where it answers.

On three axes: is it as the spec has it, is it healthy, can its node be reached. Of a boot under way it tells the phase,
of a rank that ended the exit code and the cause. Exits with 0 however the lanes are, with 4 when a node could not be
read; for alerts there is `fleet drift`.

For example: fleet status --probe qwen
"""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("status", help=HELP)(status)


def status(
    context: typer.Context,
    names: Names = None,
    file: SpecFile = DEFAULT_SPEC,
    as_json: AsJson = False,
    probe: Probe = False,
    deadline: Deadline = DEFAULT_DEADLINE_S,
) -> None:
    """Observe, ask the heads, show."""
    import asyncio

    from reconciler.core.outcome import Exit
    from reconciler.core.status import only
    from reconciler.core.unknown import unreachable

    fleet = load(context, file)
    nodes, gangs = meant(fleet, names or ())

    async def work(fleet: "Fleet") -> "FleetStatus":
        now_s = time.time()
        past = asyncio.create_task(fleet.remembered(now_s))  # read while the nodes answer
        found = await fleet.status(await fleet.observe(deadline), probe=probe, now_s=now_s, past=past)
        return _with_holds(fleet, found, await past)

    found = only(run(context, with_fleet(fleet, work)), nodes, gangs)
    if as_json:
        say_json(found)
    else:
        from reconciler.views.status_text import status_text

        say(status_text(found))
    raise typer.Exit(Exit.UNREACHABLE if unreachable(found.unknown) else Exit.OK)


def _with_holds(fleet: "Fleet", found: "FleetStatus", past: "Remembered") -> "FleetStatus":
    """What is recorded of holds and quarantine; the status is the same when that cannot be read."""
    from reconciler import holds

    if past.error is not None:
        warn(f"holds are not shown: {past.error}")
    return holds.shown(fleet, found, past.hands_off)
