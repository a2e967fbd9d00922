"""`fleet apply`: carry out the plan."""

import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from reconciler.cli.carrying import DEFAULT_WAIT_S, Forbids, carry_out
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
    from reconciler.core.plan import Plan
    from reconciler.core.stale import Stale
    from reconciler.fleet import Fleet
    from reconciler.history import Recorded
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

Unattended = Annotated[
    bool,
    typer.Option("--unattended", help="Ask nobody, and obey what keeps the agent of `fleet gitops` off; see above."),
]


HELP = """Make the nodes what the spec says.

The plan is shown first. Then: stage, cut, boot, verify, confirm.

With a saved PLAN exactly that is done, once: it is refused (exit 3) when what one of its steps rests on has changed.
With --lane, --cluster or --node only these are changed, and what hangs together with them. What is held (`fleet hold`)
or failed before is left alone, and the command ends with 3; a hold that is placed while an apply is under way does not
stop it.

What the spec says under `gitops` (windows, budget, protected lanes) and `fleet suspend` bind no person. A job that
nobody watches says --unattended: then it is not asked, and refused (exit 3) where the agent would be.

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
    unattended: Unattended = False,
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
    forbids = _guards(fleet) if unattended else _nothing
    told: dict[str, Any] = {"yes": yes or unattended, "as_json": as_json, "retry": retry, "wait_s": wait}
    carry: Callable[..., Awaitable[int]] = partial(carry_out, fleet, command="apply", forbids=forbids, **told)

    async def work(fleet: "Fleet") -> int:
        if held is not None and (why := saved.refusal(fleet, held)):
            return _refused(held, why, as_json=as_json)
        observed = await fleet.observe(deadline)
        tell_of_secrets(fleet, observed)
        if held is not None:
            return await _carry_out_saved(carry, held, observed, as_json=as_json, only_valid=only_valid)
        return await carry(narrowed(fleet.plan(observed, commit=commit), fleet.desired, asked))

    raise typer.Exit(run(context, with_fleet(fleet, work)))


async def _carry_out_saved(
    carry: Callable[..., Awaitable[int]], saved: "Saved", observed: "Observed", *, as_json: bool, only_valid: bool
) -> int:
    """Hold the plan against the nodes as they are now; then as any other. `carry`: `carry_out` as it was asked for."""
    from reconciler.core.stale import stale_steps
    from reconciler.core.withhold import going, withhold
    from reconciler.views.plan_stale import stale_text

    found = stale_steps(saved.plan, saved.saw, observed)
    if found and not only_valid:
        valid = {step.gang for step in going(withhold(saved.plan, [], [], stale=found)).steps}
        return _refused(saved, stale_text(found, valid), found, as_json=as_json)
    return await carry(saved.plan, told={"saved": saved.id, "stale": found}, saved_id=saved.id, stale=found)


def _nothing(made: "Plan", known: "Recorded") -> str:
    """Nothing forbids a person."""
    return ""


def _guards(fleet: "Fleet") -> Forbids:
    """What keeps those off whom nobody watches."""
    from reconciler.gitops.guards import unattended

    return lambda made, known: unattended(fleet.spec.gitops, made, known.suspended, time.time())


def _refused(saved: "Saved", why: str, stale: "tuple[Stale, ...]" = (), *, as_json: bool) -> int:
    from reconciler.core.exits import Exit

    if as_json:
        code = int(Exit.REFUSED)
        result = {"run": "", "summary": why.rstrip("\n")}
        say_json({"saved": saved.id, "stale": stale, "exit": code, "plan": saved.plan, "result": result})
    else:
        say(f"{why.rstrip()}\n")
    return Exit.REFUSED
