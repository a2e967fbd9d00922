"""`fleet apply`: carry out the plan."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from reconciler.cli.carrying import DEFAULT_WAIT_S, carry_out
from reconciler.cli.notes import tell_of_secrets
from reconciler.cli.recording import Events
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
    with_fleet,
)

if TYPE_CHECKING:
    from reconciler.core.observed import Observed
    from reconciler.core.stale import Stale
    from reconciler.fleet import Fleet
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
    events: Events = None,
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
