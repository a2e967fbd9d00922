"""`fleet images`: what images are where, bringing them ahead of time, and collecting what nobody needs."""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from reconciler.cli.apply import Yes
from reconciler.cli.carrying import agreed, carry_out
from reconciler.cli.recording import Events, tell
from reconciler.cli.targets import must_be_known
from reconciler.cli.wiring import (
    DEFAULT_DEADLINE_S,
    DEFAULT_SPEC,
    AsJson,
    Deadline,
    SpecFile,
    commit_of,
    group,
    load,
    run,
    say,
    say_json,
    warn,
    with_fleet,
)

if TYPE_CHECKING:
    from reconciler.core.events import ImagesCollected
    from reconciler.core.garbage import Collected, GcPlan, Stock
    from reconciler.fleet import Fleet

LS = """Show which image is on which node, and what it is to this fleet. Changes nothing.

pinned: a lane of the spec wants it. used: a container uses it, running or not. protected: `images.protect` says so.
locked: `fleet.lock` names it. kept: for a rollback (`images.retain`). spare: `fleet images gc` would remove it.
foreign: others brought it, or gave it a name. An unusable image cannot run (`usable` in JSON); `fleet images sync`
mends a pinned one. `complete` in JSON: the node has all its bytes, so that it can pass them on.
"""

SYNC = """Bring the images of placed lanes to their nodes.

Ahead of `fleet apply`, so that it has nothing to wait for. Starts and stops nothing.

For example: fleet images sync --cluster rack-a --yes
"""

GC = """Remove images that fleet brought and nobody needs.

And what is left over of the controller's vault. The plan is shown first. What a lane of the spec wants, placed or not,
what a container uses, what `images.protect` or `fleet.lock` names, the `images.retain` newest unused ones of each
repository, and what others brought: all of that stays. Each image is looked at again right before it goes, and nothing
is forced.

For example: fleet images gc --only vault --yes
"""


class Part(StrEnum):
    """A part of what is collected."""

    NODES = "nodes"
    VAULT = "vault"


NodeName = Annotated[str | None, typer.Option("--node", metavar="NODE", help="Only the images of this node.")]
Clusters = Annotated[
    list[str] | None,
    typer.Option("--cluster", metavar="CLUSTER", help="Only lanes on this cluster; may be said several times."),
]
Only = Annotated[Part | None, typer.Option("--only", help="Collect only on the nodes, or only in the vault.")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    images = group("See images, bring them ahead of time, remove spare ones.")
    images.command("ls", help=LS)(ls)
    images.command("sync", help=SYNC)(sync)
    images.command("gc", help=GC)(gc)
    app.add_typer(images, name="images")


def ls(
    context: typer.Context,
    node: NodeName = None,
    file: SpecFile = DEFAULT_SPEC,
    as_json: AsJson = False,
    deadline: Deadline = DEFAULT_DEADLINE_S,
) -> None:
    """Observe, judge, show."""
    from reconciler.core.exits import Exit
    from reconciler.core.unknown import unreachable
    from reconciler.views.stock_text import stock_json, stock_text

    fleet = load(context, file)
    must_be_known("node", [node] if node else [], fleet.spec.nodes)
    found = run(context, with_fleet(fleet, lambda fleet: _stock(fleet, deadline)))
    shown = found.on(node) if node else found
    say(stock_json(shown) if as_json else stock_text(shown))
    raise typer.Exit(Exit.UNREACHABLE if unreachable(shown.unknown) else Exit.OK)


def sync(
    context: typer.Context,
    cluster: Clusters = None,
    file: SpecFile = DEFAULT_SPEC,
    yes: Yes = False,
    as_json: AsJson = False,
    deadline: Deadline = DEFAULT_DEADLINE_S,
    events: Events = None,
) -> None:
    """Plan the staging alone, ask, carry it out."""
    from reconciler.core.sync import make_sync_plan, nodes_to_sync

    fleet = load(context, file)
    must_be_known("cluster", cluster or (), fleet.spec.clusters)
    options, clusters = fleet.options(commit_of(fleet)), frozenset(cluster) if cluster else None

    async def work(fleet: "Fleet") -> int:
        fleet = fleet.for_images()
        observed = await fleet.observe(deadline, nodes_to_sync(fleet.desired, clusters))
        made = make_sync_plan(fleet.desired, observed, clusters, options)
        return await carry_out(fleet, made, yes=yes, as_json=as_json, command="images sync", question="Bring them?")

    raise typer.Exit(run(context, with_fleet(fleet, work)))


def gc(
    context: typer.Context,
    only: Only = None,
    file: SpecFile = DEFAULT_SPEC,
    yes: Yes = False,
    as_json: AsJson = False,
    deadline: Deadline = DEFAULT_DEADLINE_S,
    events: Events = None,
) -> None:
    """Observe, plan, ask, collect."""

    async def work(fleet: "Fleet") -> int:
        from reconciler.core.garbage import gc_plan

        plan = _part(gc_plan(await _stock(fleet, deadline)), only)
        return await _carry_out(fleet, plan, yes=yes, as_json=as_json)

    raise typer.Exit(run(context, with_fleet(load(context, file), work)))


async def _stock(fleet: "Fleet", deadline_s: float) -> "Stock":
    from reconciler.stock import stock

    return await stock(fleet, await fleet.for_images().observe(deadline_s), deadline_s)


def _part(plan: "GcPlan", only: Part | None) -> "GcPlan":
    from dataclasses import replace

    if only is Part.NODES:
        return replace(plan, vault=None)
    return replace(plan, removals=()) if only is Part.VAULT else plan


async def _carry_out(fleet: "Fleet", plan: "GcPlan", *, yes: bool, as_json: bool) -> int:
    """Show the plan, ask unless told not to, collect; the exit code."""
    from reconciler.core.exits import Exit
    from reconciler.core.unknown import unreachable
    from reconciler.views.stock_text import gc_text

    if not as_json:
        say(gc_text(plan))
    if plan.is_empty:
        code = Exit.UNREACHABLE if unreachable(plan.unknown) else Exit.OK
        if as_json:
            say_json({"exit": int(code), "plan": plan, "result": None})
        return code
    if not yes and not await agreed("Remove these?"):
        if as_json:
            warn("nothing was changed")
        else:
            say("Nothing was changed.\n")
        return Exit.ERROR
    done = await _collected(fleet, plan, quiet=as_json)
    tell(_told(done))
    if as_json:
        say_json({"exit": _exit(plan, done), "plan": plan, "result": done})
    return _exit(plan, done)


async def _collected(fleet: "Fleet", plan: "GcPlan", *, quiet: bool) -> "Collected":
    from reconciler.stock import collect
    from reconciler.views.stock_text import collected_text, removed_text

    if quiet:
        return await collect(fleet, plan)
    done = await collect(fleet, plan, lambda removed: say(removed_text(removed)))
    say(collected_text(done))
    return done


def _told(done: "Collected") -> "ImagesCollected":
    from reconciler.core.events import ImagesCollected

    removed = len(done.removals) - len(done.failed)
    return ImagesCollected(removed, len(done.failed), sum(freed or 0 for freed in done.freed_bytes.values()))


def _exit(plan: "GcPlan", done: "Collected") -> int:
    from reconciler.core.exits import Exit
    from reconciler.core.unknown import unreachable

    if done.failed:
        return int(Exit.UNCHANGED)
    return int(Exit.UNREACHABLE if unreachable((*plan.unknown, *done.unknown)) else Exit.OK)
