"""`fleet hold`, `fleet holds` and `fleet release`: hands off a lane, a cluster or a node, for people and for apply."""

import time
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from reconciler.cli.lasting import lasting_s
from reconciler.cli.recording import Events, tell
from reconciler.cli.targets import must_be_known
from reconciler.cli.wiring import DEFAULT_SPEC, AsJson, SpecFile, load, say, say_json

if TYPE_CHECKING:
    import state
    from reconciler.core.withhold import HoldKind
    from reconciler.fleet import Fleet
    from reconciler.history import Recorded


class Kind(StrEnum):
    """What can be held."""

    LANE = "lane"
    CLUSTER = "cluster"
    NODE = "node"


HELP = """Keep `fleet apply` off a lane, a cluster or a node; without a name: list the holds.

A hold on a lane or a cluster leaves alone what is placed as that; a hold on a node leaves alone whatever would touch
it. What hangs together with it waits, too. `fleet plan` and `fleet status` show holds, `fleet apply` skips what is held
and ends with 3. An apply that is under way already is not stopped. Your own earlier hold on the same is replaced.

For example: fleet hold qwen --for 4h --reason "a demo until eight"
"""
HOLDS_HELP = """List the holds: what, by whom, until when and why.

For example: fleet holds --json
"""
RELEASE_HELP = """End a hold, by its id or by what is held.

For example: fleet release qwen
"""

What = Annotated[str | None, typer.Argument(metavar="LANE|CLUSTER|NODE", help="What to keep hands off.")]
Named = Annotated[str, typer.Argument(metavar="LANE|CLUSTER|NODE|ID", help="What is held, or the id of the hold.")]
For = Annotated[
    str | None, typer.Option("--for", metavar="DURATION", help="When it ends: 4h, 30m, 2d; default: when released.")
]
Reason = Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why, for whoever finds it in the way.")]
OfKind = Annotated[Kind | None, typer.Option("--kind", help="Which, when a name is of several kinds.")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("hold", help=HELP)(hold)
    app.command("holds", help=HOLDS_HELP)(holds)
    app.command("release", help=RELEASE_HELP)(release)


def hold(
    context: typer.Context,
    what: What = None,
    file: SpecFile = DEFAULT_SPEC,
    duration: For = None,
    reason: Reason = "",
    kind: OfKind = None,
    as_json: AsJson = False,
    events: Events = None,
) -> None:
    """Place a hold, or list them."""
    from reconciler.core.events import HoldPlaced
    from reconciler.holds import place

    if what is None:
        if duration or reason or kind:
            raise typer.BadParameter("name what to hold: a lane, a cluster or a node")
        return holds(context, file, as_json)
    fleet = load(context, file)
    placed = place(fleet, _kind(fleet, what, kind), what, reason, lasting_s(duration, "a hold"))
    tell(HoldPlaced(placed.id, placed.kind, what, placed.owner, reason, placed.expires_at))
    if as_json:
        return say_json(placed)
    return say(f"{_told(placed)}\n`fleet release {placed.id}` ends it.\n")


def holds(context: typer.Context, file: SpecFile = DEFAULT_SPEC, as_json: AsJson = False) -> None:
    """List."""
    from reconciler.holds import recorded

    found = recorded(load(context, file), time.time()).holds
    if as_json:
        say_json(found)
    elif found:
        say("".join(f"{item.id}  {_told(item)}\n" for item in found))
    else:
        say("Nothing is held.\n")


def release(
    context: typer.Context,
    what: Named,
    file: SpecFile = DEFAULT_SPEC,
    kind: OfKind = None,
    as_json: AsJson = False,
    events: Events = None,
) -> None:
    """End one hold."""
    from reconciler import holds as recorded_holds
    from reconciler.core.events import HoldReleased

    fleet = load(context, file)
    known = recorded_holds.recorded(fleet, time.time())
    found = recorded_holds.matching(known, what, kind.value if kind else None)
    if not found:
        raise typer.BadParameter(_not_held(fleet, known, what))
    if len(found) > 1:
        listed = "\n".join(f"  {item.id}  {_told(item)}" for item in found)
        raise typer.BadParameter(f"{len(found)} holds are on {what}: name one by its id\n{listed}")
    ended = recorded_holds.release(fleet, found[0])
    if ended:
        tell(HoldReleased(found[0].id, found[0].kind, found[0].name, found[0].owner))
    if as_json:
        say_json({"released": ended, "hold": found[0]})
    else:
        told = _told(found[0]).replace(" is held ", " was held ", 1)
        say(f"{'Released' if ended else 'It had ended already'}: {told}\n")


def _kind(fleet: "Fleet", name: str, asked: Kind | None) -> "HoldKind":
    """Which kind of thing the name is. Raises `typer.BadParameter`."""
    from reconciler.holds import kinds_of, names

    if asked is not None:
        must_be_known(asked, [name], names(fleet)[asked.value])
        return asked.value
    found = kinds_of(fleet, name)
    if not found:
        must_be_known("lane, cluster or node", [name], {known for of in names(fleet).values() for known in of})
    if len(found) > 1:
        raise typer.BadParameter(f"{name} is a {' and a '.join(found)}: say which with --kind {found[0]}")
    return found[0]


def _told(hold: "state.Hold") -> str:
    from reconciler.holds import held
    from reconciler.views.words import one_line

    return one_line(str(held(hold)))


def _not_held(fleet: "Fleet", known: "Recorded", what: str) -> str:
    import specs
    from reconciler.holds import kinds_of

    if kinds_of(fleet, what):
        return f"{what} is not held"
    near = specs.did_you_mean(what, {word for item in known.holds for word in (item.id, item.name)})
    return f"nothing is held by the name or id '{what}'{f' ({near})' if near else ''}"
