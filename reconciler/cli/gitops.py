"""`fleet gitops`: an agent that follows a branch, how it stands, and what a person tells it."""

import time
from typing import TYPE_CHECKING, Annotated

import typer

from reconciler.cli import suspend
from reconciler.cli.gitops_run import DEFAULT_WORK, RUN, Work, follow
from reconciler.cli.recording import Events, tell
from reconciler.cli.wiring import AsJson, group, say, say_json, warn

if TYPE_CHECKING:
    from reconciler.gitops.memory import Memory
    from reconciler.gitops.workplace import Workplace


TRIGGER = """Have a running agent look at the branch at once, for a hook of the repository. Exits with 1 when none runs.

For example: fleet gitops trigger --work /var/lib/fleet/gitops
"""
STATUS = """Show how the agent stands: commits, what waits and why, repairs, the last error, the next look.

For example: fleet gitops status --work /var/lib/fleet/gitops --json
"""
ACCEPT = """Let the agent go on from a commit that does not come after the one it applied last.

For when the branch was rewritten, and that is right. It holds for this commit and what comes after it, and says nothing
about its signature or its spec.

For example: fleet gitops accept 4f2c1ab --work /var/lib/fleet/gitops
"""
RETRY = """Have the agent try again what failed: commits, repairs that it gave up, versions in quarantine.

For example: fleet gitops retry --work /var/lib/fleet/gitops
"""

Named = Annotated[str, typer.Argument(metavar="COMMIT", help="The commit, or the beginning of its name.")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    commands = group("Follow a branch: a commit becomes the fleet.")
    commands.command("run", help=RUN)(follow)
    commands.command("trigger", help=TRIGGER)(trigger)
    commands.command("status", help=STATUS)(status)
    commands.command("accept", help=ACCEPT)(accept)
    commands.command("retry", help=RETRY)(retry)
    suspend.register_in(commands)
    app.add_typer(commands, name="gitops")


def trigger(work: Work = DEFAULT_WORK) -> None:
    """Wake it."""
    from reconciler.core.exits import Exit
    from reconciler.gitops.workplace import Workplace

    if not Workplace(work).wake():
        warn(f"no agent runs in {work}: start one with `fleet gitops run --work {work} --repo URL`")
        raise typer.Exit(Exit.ERROR)


def status(work: Work = DEFAULT_WORK, as_json: AsJson = False) -> None:
    """Show what is written down, and whether somebody runs."""
    from reconciler.core.exits import Exit
    from reconciler.gitops.workplace import Workplace
    from reconciler.views.gitops_text import gitops_text

    place = Workplace(work.absolute())
    told = place.told()
    if told is None:
        warn(f"no agent has run in {work}")
        raise typer.Exit(Exit.ERROR)
    from reconciler.core.canonical import jsonable

    now_s = time.time()
    told |= {"running": place.is_taken, "suspended": jsonable(_memory(place).suspended(now_s))}
    if as_json:
        say_json(told)
    else:
        say(gitops_text(told, now_s, _clock))


def accept(commit: Named, work: Work = DEFAULT_WORK, events: Events = None) -> None:
    """Write down that a person says so, and wake the agent."""
    import asyncio

    from reconciler import person
    from reconciler.core.gitops.events import CommitAccepted
    from reconciler.gitops.git import GitError, Source
    from reconciler.gitops.memory import Accepted
    from reconciler.gitops.mirror import Mirror
    from reconciler.gitops.workplace import Workplace

    place = Workplace(work.absolute())
    whole = asyncio.run(Mirror(place.mirror, Source(""), "").resolved(commit)) if place.mirror.is_dir() else None
    if whole is None:
        raise GitError(f"no commit {commit} was fetched into {work}", "`fleet gitops status` names the newest one")
    memory = _memory(place)
    memory.accept(Accepted(whole, memory.recalled().applied, person.name(), time.time()))
    tell(CommitAccepted(whole, person.name()))
    place.wake()
    say(f"{whole[:12]} is accepted: the agent goes on from it.\n")


def retry(work: Work = DEFAULT_WORK, events: Events = None) -> None:
    """Forget what failed, and wake the agent."""
    from reconciler import person
    from reconciler.core.gitops.events import RetryAsked
    from reconciler.gitops.workplace import Workplace

    place = Workplace(work.absolute())
    lifted = _memory(place).retry()
    tell(RetryAsked(person.name(), lifted))
    place.wake()
    out = f" Out of quarantine: {', '.join(lifted)}." if lifted else ""
    say(f"What failed is tried again.{out}\n")


def _memory(place: "Workplace") -> "Memory":
    """What the agent of a folder has recorded. Raises `WorkError` where none ever ran."""
    from reconciler.gitops.memory import Memory
    from reconciler.gitops.workplace import WorkError

    told = place.told()
    if told is None:
        raise WorkError(f"no agent has run in {place.folder}", "name its folder with --work")
    return Memory(place.place(told.get("state_at")))


def _clock(at_s: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S %Z", time.localtime(at_s))
