"""`fleet resume`: go on from a run that was interrupted or killed."""

import contextlib
import time
from typing import TYPE_CHECKING, Annotated

import typer

from reconciler.cli.apply import Yes
from reconciler.cli.carrying import carry_out
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
    say,
    say_json,
    warn,
    with_fleet,
)

if TYPE_CHECKING:
    import state
    from reconciler.core.observed import Observed
    from reconciler.core.plan import Plan
    from reconciler.fleet import Fleet
    from reconciler.resume import Settling, Unfinished

RunId = Annotated[str | None, typer.Argument(metavar="RUN", help="The run; default: the newest that did not end.")]

HELP = """Go on from a run that was interrupted or killed.

Says what was under way and what each of it turned out to be, by looking at the nodes. Then plans for the lanes that the
run touched, by the spec as it is now, and carries that out. `fleet apply` does the same for all lanes.

Example: fleet resume --yes
"""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("resume", help=HELP)(resume)


def resume(
    context: typer.Context,
    run_id: RunId = None,
    file: SpecFile = DEFAULT_SPEC,
    yes: Yes = False,
    as_json: AsJson = False,
    deadline: Deadline = DEFAULT_DEADLINE_S,
    events: Events = None,
) -> None:
    """Settle, tell, plan, ask, carry out."""
    fleet = load(context, file)
    commit = commit_of(fleet)

    async def work(fleet: "Fleet") -> int:
        from reconciler.applying import ROLLBACK

        found, settling = await _settled(fleet, run_id)
        if found is None:
            return _nothing(as_json=as_json)
        if found.run.id in settling.working:
            return _under_way(found, settling)
        if not as_json:
            say(_told(found, settling))
        if found.run.command == ROLLBACK:
            return _must_be_said_again(found)
        fleet, made = _planned(fleet, found, await fleet.observe(deadline), commit)
        if made.spec != found.run.spec_fingerprint:
            warn("the spec has changed since: what follows is by the spec as it is now")
        told = _as_json(found, settling, made)
        return await carry_out(
            fleet,
            made,
            yes=yes,
            as_json=as_json,
            command=found.run.command,
            question="Go on with this?",
            told=told,
        )

    raise typer.Exit(run(context, with_fleet(fleet, work)))


async def _settled(fleet: "Fleet", run_id: str | None) -> "tuple[Unfinished | None, Settling]":
    """What to go on from, and what became of all that was open."""
    from reconciler.resume import settle, unfinished

    with contextlib.closing(fleet.open_state()) as store:
        if run_id is not None and store.run(run_id) is None:
            raise typer.BadParameter(f"no run {run_id} is recorded", param_hint="RUN")
        settling = await settle(store, fleet.nodes, fleet.desired, time.time())
        return unfinished(store, fleet.desired.fleet, run_id), settling


def _nothing(*, as_json: bool) -> int:
    if as_json:
        say_json({"run": None, "exit": 0, "plan": None, "result": None})
    else:
        say("Nothing to resume: every run came to its end, or a later one saw its lanes through.\n")
    return 0


def _under_way(found: "Unfinished", settling: "Settling") -> int:
    from reconciler.core.exits import Exit

    warn(f"run {found.run.id} is under way: {settling.working[found.run.id].told}")
    return Exit.LEASE_HELD


def _must_be_said_again(found: "Unfinished") -> int:
    """By the spec these lanes would go forward again, to what somebody wanted to get away from."""
    from reconciler.core.exits import Exit

    warn(f"run {found.run.id} was a `fleet rollback` of {', '.join(sorted(found.gangs))}")
    warn("give that command again: it goes on from here. `fleet apply` would bring what the spec says")
    return Exit.REFUSED


def _planned(fleet: "Fleet", found: "Unfinished", observed: "Observed", commit: str | None) -> "tuple[Fleet, Plan]":
    """What is left to do for the gangs of the run, in whole groups: what its command would do for them."""
    from reconciler.core.sync import make_sync_plan
    from reconciler.core.targets import narrowed
    from reconciler.resume import Touched

    if found.run.command == "images sync":
        made = make_sync_plan(fleet.desired, observed, None, fleet.options(commit))
    elif found.run.command == "down":
        fleet = fleet.without(frozenset(gang.lane for gang in fleet.desired.gangs))
        made = fleet.plan(observed, commit=commit, allow_empty=True)
    else:
        made = fleet.plan(observed, commit=commit)
    return fleet, narrowed(made, fleet.desired, Touched(gangs=found.gangs))


def _told(found: "Unfinished", settling: "Settling") -> str:
    """Which run it was, and each effect that was under way with what became of it."""
    made = found.run
    began = time.strftime("%Y-%m-%d %H:%M", time.localtime(made.started_at))
    how = "did not come to its end" if made.id in settling.ended or made.ended_at is None else "was interrupted"
    lines = [f"run {made.id} (`fleet {made.command}`, {began}, by {made.user}@{made.host}) {how}"]
    lines += [f"  {_words(entry)}: {entry.detail}" for entry in settling.settled if entry.run_id == made.id]
    lines += [
        f"  {_words(entry)}: not known, since {entry.node or 'a node'} cannot be read now"
        for entry in settling.left
        if entry.run_id == made.id
    ]
    if len(lines) == 1:
        lines.append("  nothing was under way")
    return "\n".join(lines) + "\n\n"


def _words(entry: "state.Entry") -> str:
    """ "starting fleet-lane-r0-v1 on node1"."""
    from reconciler.views.event_text import DOING

    doing = next((words for op, words in DOING.items() if op == entry.op), entry.op)
    return f"{doing} {entry.target.rpartition('@')[0] or entry.target}{f' on {entry.node}' if entry.node else ''}"


def _as_json(found: "Unfinished", settling: "Settling", made: "Plan") -> dict[str, object]:
    return {
        "run": found.run,
        "gangs": sorted(found.gangs),
        "settled": [entry for entry in settling.settled if entry.run_id == found.run.id],
        "open": [entry for entry in settling.left if entry.run_id == found.run.id],
        "spec_changed": made.spec != found.run.spec_fingerprint,
    }
