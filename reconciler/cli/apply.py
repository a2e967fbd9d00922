"""`fleet apply`: carry out the plan."""

import sys
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated

import typer

from reconciler.cli.notes import tell_of_secrets
from reconciler.cli.plan import Format, rendered
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
    stop_on_signals,
    warn,
    with_fleet,
)

if TYPE_CHECKING:
    from reconciler.core.plan import Plan
    from reconciler.fleet import Applied, Fleet

Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


HELP = """Make the nodes what the spec says.

The plan is shown first. Then: stage, cut, boot, verify, confirm.
"""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("apply", help=HELP)(apply)


def apply(
    context: typer.Context,
    file: SpecFile = DEFAULT_SPEC,
    yes: Yes = False,
    as_json: AsJson = False,
    deadline: Deadline = DEFAULT_DEADLINE_S,
) -> None:
    """Observe, plan, ask, carry out."""
    fleet = load(context, file)
    commit = commit_of(file)

    async def work(fleet: "Fleet") -> int:
        observed = await fleet.observe(deadline)
        tell_of_secrets(fleet, observed)
        made = fleet.plan(observed, commit=commit)
        return await carry_out(fleet, made, yes=yes, as_json=as_json, command="apply")

    raise typer.Exit(run(context, with_fleet(fleet, work)))


async def carry_out(
    fleet: "Fleet",
    made: "Plan",
    *,
    yes: bool,
    as_json: bool,
    command: str,
    question: str = "Apply this plan?",
    told: Mapping[str, object] = MappingProxyType({}),
) -> int:
    """Show the plan, ask unless told not to, apply it; the exit code. `told`: what the JSON output says beside it."""
    from reconciler.core.outcome import Exit, plan_exit

    if not as_json:
        say(rendered(fleet, made, Format.TEXT))
    if made.refusals or made.is_empty:
        if as_json:
            say_json({**told, "exit": int(plan_exit(made, changes_count=False)), "plan": made, "result": None})
        return plan_exit(made, changes_count=False)
    if not yes and not await agreed(question):
        if as_json:
            warn("nothing was changed")
        else:
            say("Nothing was changed.\n")
        return Exit.ERROR
    applied = await _applied(fleet, made, as_json=as_json, command=command)
    if as_json:
        say_json({**told, "exit": int(applied.exit), "plan": made, "result": _result(applied)})
    return applied.exit


async def agreed(question: str) -> bool:
    """Ask on a terminal; without one nobody can answer."""
    if not sys.stdin.isatty():
        warn("nobody to ask: say --yes to go on without a question")
        return False
    sys.stdout.write(f"{question} [y/N] ")
    sys.stdout.flush()
    return (await _line_typed()).strip().lower() in {"y", "yes"}


async def _line_typed() -> str:
    """The next line of the terminal. Waited for in the loop: a thread would keep the process after an interrupt."""
    import asyncio

    loop = asyncio.get_running_loop()
    typed = loop.create_future()
    loop.add_reader(sys.stdin.fileno(), typed.set_result, None)
    try:
        await typed
    finally:
        loop.remove_reader(sys.stdin.fileno())
    return sys.stdin.readline()


async def _applied(fleet: "Fleet", made: "Plan", *, as_json: bool, command: str) -> "Applied":
    from reconciler.cli.progress import reporter

    stop = stop_on_signals()
    with reporter(quiet=as_json) as on_event:
        return await fleet.apply(made, on_event, stop, command)


def _result(applied: "Applied") -> dict[str, object]:
    failures = [
        {"step": item.step.id, "status": item.status, "detail": item.detail, "logs": list(item.logs)}
        for item in applied.failures
    ]
    return {
        "run": applied.run_id,
        "summary": applied.summary,
        "steps": applied.status,
        "failures": failures,
        "sent_bytes": applied.sent_bytes,
    }
