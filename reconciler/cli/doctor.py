"""`fleet doctor`: every check, by name."""

from typing import TYPE_CHECKING, Annotated

import typer

from reconciler.cli.targets import Names, meant, must_be_known
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
    with_fleet,
)

if TYPE_CHECKING:
    from reconciler.core.doctor import Diagnosis
    from reconciler.fleet import Fleet

Only = Annotated[list[str] | None, typer.Option("--check", metavar="ID", help="Only this check; may be repeated.")]
Whole = Annotated[bool, typer.Option("--all", help="Show what is fine and what is not known, too.")]
Listed = Annotated[bool, typer.Option("--list", help="Explain every check there is, and look at nothing.")]

EPILOG = """Examples: `fleet doctor dgx3`, before a lane moves there; `fleet doctor --check interface --check hca`,
after the switch was recabled. Exit codes: 3 when a boot would be refused, 4 when nodes could not be read, else 0. To
let a finding pass for a while, write in the spec
`checks: {silence: [{check: ID, address: NODE, reason: WHY, until: 2026-12-24}]}`."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("doctor", help="Run every check on nodes and lanes, and say what to mend.", epilog=EPILOG)(doctor)


def doctor(
    context: typer.Context,
    names: Names = None,
    file: SpecFile = DEFAULT_SPEC,
    only: Only = None,
    whole: Whole = False,
    listed: Listed = False,
    as_json: AsJson = False,
    deadline: Deadline = DEFAULT_DEADLINE_S,
) -> None:
    """Observe, check, show. Changes nothing."""
    from reconciler import plugins
    from reconciler.core.checks import BUILT_IN
    from reconciler.views.doctor_text import catalogue_text, doctor_text

    checks = (*BUILT_IN, *plugins.checks())
    if listed:
        rows = [{"id": item.id, "title": item.title, "mend": item.mend, "guards": item.guards} for item in checks]
        say_json(rows) if as_json else say(catalogue_text(checks))
        raise typer.Exit
    must_be_known("check", only or (), {item.id for item in checks} | {"silence"})
    fleet = load(context, file)

    async def work(fleet: "Fleet") -> "Diagnosis":
        return fleet.doctor(await fleet.observe(deadline))

    nodes, gangs = meant(fleet, names or ())
    from reconciler.core.doctor import limited

    found = limited(run(context, with_fleet(fleet, work)), nodes, gangs, frozenset(only or ()))
    say_json(found) if as_json else say(doctor_text(found, whole=whole))
    raise typer.Exit(_exit(found))


def _exit(found: "Diagnosis") -> int:
    from reconciler.core.checks import Result
    from reconciler.core.exits import Exit
    from reconciler.core.unknown import unreachable

    if found.of(Result.FAIL):
        return Exit.REFUSED
    return Exit.UNREACHABLE if unreachable(found.unknown) else Exit.OK
