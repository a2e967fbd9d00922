"""`fleet apply`: carry out the plan."""

import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated

import typer

from reconciler.cli.notes import tell_of_secrets
from reconciler.cli.plan import Format, rendered
from reconciler.cli.targets import Clusters, Lanes, Nodes, targets
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
    from reconciler.core.exits import Exit
    from reconciler.core.observed import Observed
    from reconciler.core.plan import Plan
    from reconciler.core.stale import Stale
    from reconciler.fleet import Applied, Fleet
    from reconciler.saved import Saved

Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
PlanFile = Annotated[
    Path | None, typer.Argument(metavar="PLAN", help="A plan saved with `fleet plan --out`; default: a new one.")
]
OnlyValid = Annotated[
    bool, typer.Option("--only-valid", help="Of a saved plan that is stale in part: apply the rest. Exits with 3.")
]
Wait = Annotated[
    float,
    typer.Option(
        "--wait", min=0.0, metavar="SECONDS", help="How long to wait for nodes that somebody else changes now."
    ),
]
DEFAULT_WAIT_S = 20.0
"""A lease of somebody who died lapses within it (`nodes/lease_program.py`): running again after a kill just works."""

Retry = Annotated[bool, typer.Option("--retry", help="Try versions again that failed before.")]


HELP = """Make the nodes what the spec says.

The plan is shown first. Then: stage, cut, boot, verify, confirm.

With a saved PLAN exactly that is done, once: it is refused (exit 3) when what one of its steps rests on has changed.
With --lane, --cluster or --node only these are changed, and what hangs together with them. What is held (`fleet hold`)
or failed before is left alone, and the command ends with 3; a hold that is placed while an apply is under way does not
stop it.

For example: fleet apply --cluster rack-a
"""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("apply", help=HELP)(apply)


def apply(
    context: typer.Context,
    plan: PlanFile = None,
    file: SpecFile = DEFAULT_SPEC,
    yes: Yes = False,
    as_json: AsJson = False,
    lane: Lanes = None,
    cluster: Clusters = None,
    node: Nodes = None,
    retry: Retry = False,
    only_valid: OnlyValid = False,
    wait: Wait = DEFAULT_WAIT_S,
    deadline: Deadline = DEFAULT_DEADLINE_S,
) -> None:
    """Observe, plan or read the saved plan, ask, carry out."""
    from reconciler import saved
    from reconciler.core.targets import narrowed

    if plan is not None and (lane or cluster or node):
        raise typer.BadParameter("a saved plan is applied as it is: name lanes when it is made")
    if plan is None and only_valid:
        raise typer.BadParameter("--only-valid is about a saved plan: name its file")
    held = saved.read(plan) if plan is not None else None
    fleet = load(context, file)
    asked = targets(fleet, lane, cluster, node)
    commit = commit_of(fleet)

    async def work(fleet: "Fleet") -> int:
        if held is not None and (why := saved.refusal(fleet, held)):
            return _refused(held, why, as_json=as_json)
        observed = await fleet.observe(deadline)
        tell_of_secrets(fleet, observed)
        if held is not None:
            return await _carry_out_saved(
                fleet, held, observed, yes=yes, as_json=as_json, retry=retry, only_valid=only_valid, wait_s=wait
            )
        made = narrowed(fleet.plan(observed, commit=commit), fleet.desired, asked)
        return await carry_out(fleet, made, yes=yes, as_json=as_json, command="apply", retry=retry, wait_s=wait)

    raise typer.Exit(run(context, with_fleet(fleet, work)))


async def _carry_out_saved(
    fleet: "Fleet",
    saved: "Saved",
    observed: "Observed",
    *,
    yes: bool,
    as_json: bool,
    retry: bool,
    only_valid: bool,
    wait_s: float,
) -> int:
    """Hold the plan against the nodes as they are now; then as any other."""
    from reconciler.core.stale import stale_steps
    from reconciler.core.withhold import going, withhold
    from reconciler.views.plan_stale import stale_text

    found = stale_steps(saved.plan, saved.saw, observed)
    if found and not only_valid:
        valid = {step.gang for step in going(withhold(saved.plan, [], [], stale=found)).steps}
        return _refused(saved, stale_text(found, valid), found, as_json=as_json)
    told = {"saved": saved.id, "stale": found}
    return await carry_out(
        fleet,
        saved.plan,
        yes=yes,
        as_json=as_json,
        command="apply",
        told=told,
        saved_id=saved.id,
        retry=retry,
        stale=found,
        wait_s=wait_s,
    )


def _refused(saved: "Saved", why: str, stale: "tuple[Stale, ...]" = (), *, as_json: bool) -> int:
    from reconciler.core.exits import Exit

    if as_json:
        code = int(Exit.REFUSED)
        result = {"run": "", "summary": why.rstrip("\n")}
        say_json({"saved": saved.id, "stale": stale, "exit": code, "plan": saved.plan, "result": result})
    else:
        say(f"{why.rstrip()}\n")
    return Exit.REFUSED


async def carry_out(
    fleet: "Fleet",
    made: "Plan",
    *,
    yes: bool,
    as_json: bool,
    command: str,
    question: str = "Apply this plan?",
    told: Mapping[str, object] = MappingProxyType({}),
    saved_id: str | None = None,
    retry: bool = False,
    stale: "tuple[Stale, ...]" = (),
    wait_s: float | None = DEFAULT_WAIT_S,
    on_applied: "Callable[[Applied], None]" = lambda applied: None,
) -> int:
    """Show the plan, ask unless told not to, apply what of it is not withheld; the exit code.

    `told`: what the JSON output says beside it. `saved_id`: of a saved plan. `retry`: also what failed before. `stale`:
    what is left out for it. `wait_s`: for leases that others hold. `on_applied`: told how it ended, before it is said.
    """
    from reconciler import holds
    from reconciler.core.outcome import Exit

    def but_withheld(made: "Plan") -> "Plan":
        return holds.withheld(made, holds.recorded(fleet, time.time()), retry=retry, stale=stale)

    made = but_withheld(made)
    if not as_json:
        say(rendered(fleet, made, Format.TEXT))
    code = _standstill(made)
    if code is not None:
        if as_json:
            say_json({**told, "exit": int(code), "plan": made, "result": None})
        return code
    if not yes and not await agreed(question):
        if as_json:
            warn("nothing was changed")
        else:
            say("Nothing was changed.\n")
        return Exit.ERROR
    made = but_withheld(made)  # an answer may have taken its time
    applied = await _applied(fleet, made, as_json=as_json, command=command, saved_id=saved_id, wait_s=wait_s)
    on_applied(applied)
    if as_json:
        say_json({**told, "exit": int(applied.exit), "plan": made, "result": _result(applied)})
    elif not applied.status:  # it ended before there was any event to tell of
        say(f"{applied.summary}\n")
    return applied.exit


def _standstill(made: "Plan") -> "Exit | None":
    """The exit code when nothing of the plan is to be carried out now."""
    from reconciler.core.outcome import Exit, plan_exit
    from reconciler.core.withhold import going

    if made.refusals or made.is_empty:
        return plan_exit(made, changes_count=False)
    return Exit.REFUSED if going(made).is_empty else None


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


async def _applied(
    fleet: "Fleet", made: "Plan", *, as_json: bool, command: str, saved_id: str | None, wait_s: float | None
) -> "Applied":
    from reconciler.cli.plan import recorded_estimates
    from reconciler.cli.progress import reporter

    stop = stop_on_signals()
    with reporter(quiet=as_json, expected=recorded_estimates(fleet, made).steps) as on_event:
        return await fleet.apply(made, on_event, stop, command, saved_id, wait_s)


def _result(applied: "Applied") -> dict[str, object]:
    failures = [
        {
            "step": item.step.id,
            "status": item.status,
            "detail": item.detail,
            "cause": item.cause,
            "logs": list(item.logs),
        }
        for item in applied.failures
    ]
    return {
        "run": applied.run_id,
        "summary": applied.summary,
        "steps": applied.status,
        "failures": failures,
        "sent_bytes": applied.sent_bytes,
    }
