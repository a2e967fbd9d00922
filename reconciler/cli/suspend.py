"""`fleet suspend` and `fleet unsuspend`, also as `fleet gitops suspend` and `resume`: keep the agent from acting."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from reconciler.cli.lasting import lasting_s
from reconciler.cli.recording import Events, tell
from reconciler.cli.wiring import DEFAULT_SPEC, AsJson, SpecFile, load, say, say_json, warn

if TYPE_CHECKING:
    import state
    from reconciler.core.gitops.memory import Suspension

HELP = """Keep the agent of `fleet gitops` from changing the fleet: no commit is applied, and no lane repaired.

It goes on looking and reporting. An apply that is under way is not stopped, and no person's `fleet apply` either: to
keep people off, too, there is `fleet hold`. It ends by itself after --for, or with `fleet unsuspend`. Your new
suspension takes the place of an earlier one, whoever said it.

It is written down where the agent keeps its record: name its folder with --work, or the spec, when the spec or
FLEET_STATE names a state that both share. `fleet suspend` and `fleet gitops suspend` are the same.

For example: fleet suspend --for 4h --reason "a demo until eight" --work /var/lib/fleet/gitops
"""
RESUME_HELP = """Let the agent of `fleet gitops` act again. `fleet unsuspend` and `fleet gitops resume` are the same.

(`fleet resume` is something else: it goes on with an apply that was interrupted.)

For example: fleet unsuspend --work /var/lib/fleet/gitops
"""

For = Annotated[
    str | None, typer.Option("--for", metavar="DURATION", help="When it ends: 4h, 30m, 2d; default: `unsuspend`.")
]
Reason = Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why, for whoever waits for the agent.")]
AgentFolder = Annotated[
    Path | None,
    typer.Option("--work", envvar="FLEET_GITOPS_WORK", metavar="DIR", help="The folder of the agent on this machine."),
]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("suspend", help=HELP)(suspend)
    app.command("unsuspend", help=RESUME_HELP)(unsuspend)


def register_in(group: typer.Typer) -> None:
    """Add them to `fleet gitops`."""
    group.command("suspend", help=HELP)(suspend)
    group.command("resume", help=RESUME_HELP)(unsuspend)


def suspend(
    context: typer.Context,
    reason: Reason,
    duration: For = None,
    work: AgentFolder = None,
    file: SpecFile = DEFAULT_SPEC,
    as_json: AsJson = False,
    events: Events = None,
) -> None:
    """Write it down, and wake the agent so that it says so."""
    from reconciler import person
    from reconciler.core.gitops.events import AgentSuspended
    from reconciler.core.gitops.memory import NOTHING_REMEMBERED, Suspension
    from reconciler.gitops.memory import Memory
    from reconciler.holds import suspended

    if not reason.strip():
        raise typer.BadParameter("--reason: somebody will want to know why")
    seconds, now_s = lasting_s(duration, "a suspension"), time.time()
    told = Suspension(person.name(), reason, now_s, None if seconds is None else now_s + seconds)
    place = _state_of(context, work, file)
    memory = Memory(place)
    memory.suspend(told)
    if memory.recalled() == NOTHING_REMEMBERED:
        warn("no agent has applied anything by what is written down there: is it the right one? See --work")
    tell(AgentSuspended(told.by, told.reason, told.until_s))
    _wake(work)
    if as_json:
        say_json(_shown(place, told))
    else:
        say(f"The agent is {suspended(told)}\nWritten down in {place}. `fleet unsuspend` ends it.\n")


def unsuspend(
    context: typer.Context,
    work: AgentFolder = None,
    file: SpecFile = DEFAULT_SPEC,
    as_json: AsJson = False,
    events: Events = None,
) -> None:
    """Take it away, whoever said it, and wake the agent."""
    from reconciler import person
    from reconciler.core.gitops.events import AgentResumed
    from reconciler.gitops.memory import Memory
    from reconciler.holds import suspended

    place = _state_of(context, work, file)
    before = Memory(place).unsuspend(time.time())
    tell(AgentResumed(person.name()))
    _wake(work)
    if as_json:
        say_json(_shown(place, before))
    elif before is None:
        say(f"The agent was not suspended, by what is written down in {place}.\n")
    else:
        say(f"The agent acts again. It was {suspended(before)}\n")


def _state_of(context: typer.Context, work: Path | None, file: Path) -> "state.Location":
    """Where the agent's record is: by its folder, or else by the spec."""
    if work is None:
        return load(context, file).folder
    from reconciler.gitops.workplace import WorkError, Workplace

    place: Workplace = Workplace(work.absolute())
    told = place.told()
    if told is None:
        raise WorkError(f"no agent has run in {work}", "name its folder with --work")
    return place.place(told.get("state_at"))


def _wake(work: Path | None) -> None:
    if work is not None:
        from reconciler.gitops.workplace import Workplace

        Workplace(work.absolute()).wake()


def _shown(place: "state.Location", told: "Suspension | None") -> dict[str, object]:
    return {"state": str(place), "suspension": told}
