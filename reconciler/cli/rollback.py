"""`fleet rollback`: go back to an earlier version of one placement."""

from typing import TYPE_CHECKING, Annotated

import typer

from reconciler.cli.apply import Wait, Yes
from reconciler.cli.carrying import DEFAULT_WAIT_S, carry_out
from reconciler.cli.recording import Events
from reconciler.cli.wiring import (
    DEFAULT_DEADLINE_S,
    DEFAULT_SPEC,
    AsJson,
    Deadline,
    SpecFile,
    commit_of,
    load,
    run,
    warn,
    with_fleet,
)

if TYPE_CHECKING:
    from reconciler.fleet import Applied, Fleet

Placement = Annotated[str, typer.Argument(help="The placement, CLUSTER/LANE; or a lane that is placed once.")]
To = Annotated[
    int | None,
    typer.Option("--to", min=1, metavar="REVISION", help="The revision to go back to; default: the one before."),
]
Why = Annotated[str, typer.Option("--reason", help="Why, for whoever meets it in plans and in the history.")]

HELP = """Go back to an earlier version of one placement.

A new revision like the earlier one is staged, booted and proved as by `fleet apply`; when that fails, what runs now
comes back. The spec stays as it is: the version that was gone back from is put aside, and `fleet apply` leaves it alone
until the spec changes or `fleet apply --retry` insists. `fleet history CLUSTER/LANE` lists revisions.

For example: fleet rollback rack-a/chat --reason "answers in the wrong language"
"""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("rollback", help=HELP)(rollback)


def rollback(
    context: typer.Context,
    placement: Placement,
    to: To = None,
    reason: Why = "",
    file: SpecFile = DEFAULT_SPEC,
    yes: Yes = False,
    as_json: AsJson = False,
    wait: Wait = DEFAULT_WAIT_S,
    deadline: Deadline = DEFAULT_DEADLINE_S,
    events: Events = None,
) -> None:
    """Find the version, plan with it, ask, carry out, put the other one aside."""
    fleet = load(context, file)
    commit = commit_of(fleet)

    async def work(fleet: "Fleet") -> int:
        from reconciler import rollback as back
        from reconciler.applying import ROLLBACK
        from reconciler.core.exits import Exit
        from reconciler.core.targets import Targets, narrowed

        wanted = back.placement(fleet, placement)
        observed = await fleet.observe(deadline)
        version = back.version(fleet, wanted, observed, to)
        warn(f"{wanted.address} goes back to revision {version.number} ({version.origin})")
        earlier = fleet.wanting(version.gang)
        targets = Targets(lanes=frozenset({wanted.lane}), clusters=frozenset({wanted.cluster}))
        made = narrowed(earlier.plan(await earlier.observe(deadline), commit=commit), earlier.desired, targets)

        def put_aside(applied: "Applied") -> None:
            if applied.exit is Exit.OK:
                back.put_aside(fleet, wanted, version, applied.run_id, reason)

        return await carry_out(
            earlier,
            made,
            yes=yes,
            as_json=as_json,
            command=ROLLBACK,
            question=f"Go back to revision {version.number}?",
            told={"revision": version.number},
            retry=True,
            wait_s=wait,
            on_applied=put_aside,
        )

    raise typer.Exit(run(context, with_fleet(fleet, work)))
