"""`fleet lease`: who is changing which node right now, and how to end that."""

from typing import TYPE_CHECKING, Annotated

import typer

from reconciler.cli.recording import Events, tell
from reconciler.cli.targets import must_be_known
from reconciler.cli.wiring import (
    DEFAULT_DEADLINE_S,
    DEFAULT_SPEC,
    AsJson,
    Deadline,
    SpecFile,
    group,
    load,
    run,
    say,
    say_json,
    warn,
    with_fleet,
)

if TYPE_CHECKING:
    from reconciler.core.leases import Holder, NodeLease
    from reconciler.fleet import Fleet

LS = """Show who has the lease of each node: who, since when, what for. Changes nothing.

A lease is the exclusive right to change a node. `fleet apply` takes it and gives it back; it ends by itself when the
command does, however it ends, and some 15 s after the last word of a controller that is cut off.

For example: fleet lease ls --json
"""
BREAK = """End the lease of a node, whoever has it.

The holder's connection to the node is ended first, so that nothing it sends arrives any more; its run fails. Only
needed when a run that nobody can reach or stop goes on: a lease of one that was killed is gone already.

For example: fleet lease break dgx1 --yes
"""

NodeName = Annotated[str, typer.Argument(metavar="NODE", help="The node whose lease to end.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    lease = group("See who is changing which node, and end that.")
    lease.command("ls", help=LS)(ls)
    lease.command("break", help=BREAK)(break_lease)
    app.add_typer(lease, name="lease")


def ls(
    context: typer.Context,
    file: SpecFile = DEFAULT_SPEC,
    as_json: AsJson = False,
    deadline: Deadline = DEFAULT_DEADLINE_S,
) -> None:
    """Ask all nodes, show."""
    from reconciler.core.exits import Exit
    from reconciler.core.unknown import unreachable
    from reconciler.execution.leasing import leases_of
    from reconciler.views.lease_text import lease_text

    async def work(fleet: "Fleet") -> "tuple[NodeLease, ...]":
        return await leases_of(fleet.nodes, list(fleet.spec.nodes), deadline)

    found = run(context, with_fleet(load(context, file), work))
    if as_json:
        say_json(found)
    else:
        say(lease_text(found))
    raise typer.Exit(Exit.UNREACHABLE if unreachable(item.unknown for item in found) else Exit.OK)


def break_lease(
    context: typer.Context,
    node: NodeName,
    file: SpecFile = DEFAULT_SPEC,
    yes: Yes = False,
    as_json: AsJson = False,
    deadline: Deadline = DEFAULT_DEADLINE_S,
    events: Events = None,
) -> None:
    """Look, ask, end it."""
    fleet = load(context, file)
    must_be_known("node", [node], fleet.spec.nodes)

    async def work(fleet: "Fleet") -> int:
        return await _broken(fleet, node, deadline, yes=yes, as_json=as_json)

    raise typer.Exit(run(context, with_fleet(fleet, work)))


async def _broken(fleet: "Fleet", name: str, deadline_s: float, *, yes: bool, as_json: bool) -> int:
    """The exit code. Raises `NodeError`."""
    from reconciler.core.events import LeaseBroken
    from reconciler.core.exits import Exit

    leases = (await fleet.nodes.connect(name, deadline_s)).leases
    holder = await leases.holder()
    if holder is None:
        _say_end(name, None, as_json=as_json)
        return Exit.OK
    if not yes and not await _agreed(name, holder, as_json=as_json):
        warn("nothing was changed")
        return Exit.ERROR
    broken = await leases.break_held()
    if broken is not None:
        tell(LeaseBroken(name, broken))
    _say_end(name, broken, as_json=as_json)
    return Exit.OK


async def _agreed(name: str, holder: "Holder", *, as_json: bool) -> bool:
    from reconciler.cli.carrying import agreed
    from reconciler.views.lease_text import held_text

    if not as_json:
        say(f"{name} is {held_text(holder)}\n")
    return await agreed("End that run's right to change the node?")


def _say_end(name: str, broken: "Holder | None", *, as_json: bool) -> None:
    from reconciler.views.lease_text import held_text

    if as_json:
        say_json({"node": name, "broken": broken})
    elif broken is None:
        say(f"Nobody has the lease of {name}.\n")
    else:
        say(f"Ended: {name} was {held_text(broken)}\n")
