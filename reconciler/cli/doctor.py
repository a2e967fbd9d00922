"""`fleet doctor`: every check, by name."""

from typing import TYPE_CHECKING, Annotated

import typer

from reconciler.cli.targets import must_be_known
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
    from reconciler.core.doctor import Diagnosis
    from reconciler.fleet import Fleet

Names = Annotated[list[str] | None, typer.Argument(metavar="[NODE|CLUSTER|LANE]...", help="What to look at; all.")]
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

    nodes, gangs = _meant(fleet, names or ())
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


def _meant(fleet: "Fleet", names: list[str] | tuple[str, ...]) -> tuple[frozenset[str] | None, frozenset[str] | None]:
    """Nodes and gangs that the names stand for; None for all."""
    if not names:
        return None, None
    spec = fleet.spec
    placed = fleet.desired.gangs
    known = {*spec.nodes, *spec.clusters, *spec.lanes, *(gang.address for gang in placed)}
    must_be_known("node, cluster, lane or placement", names, known)
    for name in sorted({*names} & {*spec.lanes} - {gang.lane for gang in placed} - {*spec.nodes, *spec.clusters}):
        warn(f"the lane {name} is placed nowhere: there is no node to check it on")
    gangs = [gang for gang in placed if {gang.address, gang.lane, gang.cluster, *gang.nodes} & set(names)]
    nodes = {name for name in names if name in spec.nodes}
    nodes |= {node for name in names if name in spec.clusters for node in spec.clusters[name].nodes}
    nodes |= {node for gang in gangs if {gang.address, gang.lane} & {*names} for node in gang.nodes}
    return frozenset(nodes), frozenset(gang.address for gang in gangs)
