"""`fleet logs`: what the ranks of a lane say."""

from typing import TYPE_CHECKING, Annotated

import typer

from reconciler.cli.wiring import DEFAULT_SPEC, SpecFile, load, run, with_fleet

if TYPE_CHECKING:
    from reconciler.fleet import Fleet

Lane = Annotated[str, typer.Argument(help="The lane.")]
Rank = Annotated[int | None, typer.Option("--rank", min=0, help="Only this rank; default: all.")]
Follow = Annotated[bool, typer.Option("--follow", help="Go on with each new line until interrupted.")]
Tail = Annotated[int, typer.Option("--tail", "-n", min=0, help="How many of the last lines of each rank.")]

AsJsonLines = Annotated[bool, typer.Option("--json", help="Print one JSON object a line: rank, node, container, line.")]

HELP = """Print the last log lines of a lane's ranks, running or not.

Each line begins with its rank and node; values of secrets are taken out. Without --rank or --follow the ranks come one
after the other.

For example: fleet logs qwen --rank 1 --tail 500
"""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("logs", help=HELP)(logs)


def logs(
    context: typer.Context,
    lane: Lane,
    file: SpecFile = DEFAULT_SPEC,
    rank: Rank = None,
    follow: Follow = False,
    tail: Tail = 100,
    as_json: AsJsonLines = False,
) -> None:
    """Find the ranks' containers on the nodes and print their logs."""
    from reconciler.cli.log_streams import print_logs

    async def work(fleet: "Fleet") -> int:
        return await print_logs(fleet, lane, rank, tail, follow=follow, as_json=as_json)

    raise typer.Exit(run(context, with_fleet(load(context, file), work)))
