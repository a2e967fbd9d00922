"""`fleet models`: which model is where, whether it is what it should be, and copies of it."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from reconciler.cli.apply import Yes
from reconciler.cli.carrying import carry_out
from reconciler.cli.images import Clusters
from reconciler.cli.recording import Events
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
    warn,
    with_fleet,
)

if TYPE_CHECKING:
    from reconciler.core.model_stock import ModelStock, Proof
    from reconciler.core.observed import Unknown
    from reconciler.fleet import Fleet
    from reconciler.nodes.protocols import Progress

LS = """Show which model of the spec is on which node. Changes nothing.

whole: nothing of it is missing, and every link leads somewhere inside the lane's containers. partial: files that its
index names are not there. broken: it is on the node, and links break inside the container. other: another revision, or
other checksums, than the spec says. Where no lane reads it, it is looked at as the node itself sees it.

For example: fleet models ls --node dgx3
"""

VERIFY = """Read models to the last byte, and compare. Changes nothing.

Hashes what `models.*.verify` names, and the big files of a Hugging Face cache, which has them under their checksum; and
asks each safetensors file whether it is as long as it says. Nodes work at the same time. A node that no lane of the
model is placed on may lack it. Exit code 2: something differs.

For example: fleet models verify mimo-v26-flash-mopd --node dgx3
"""

SYNC = """Copy models to the nodes whose placed lanes lack them, from another node of the cluster that has them whole.

With rsync, from node to node over the cluster's own network where that can be, else through this machine. What breaks
off goes on from there the next time; nothing counts before all of it has come and is proved. Starts and stops nothing.

For example: fleet models sync mimo-v26-flash-mopd --cluster 4nodes-switch --yes
"""

ModelName = Annotated[str | None, typer.Argument(metavar="[MODEL]", help="Only this model.", show_default=False)]
NodeName = Annotated[str | None, typer.Option("--node", metavar="NODE", help="Only on this node.")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    models = group("See models on the nodes, prove them, copy them.")
    models.command("ls", help=LS)(ls)
    models.command("verify", help=VERIFY)(verify)
    models.command("sync", help=SYNC)(sync)
    app.add_typer(models, name="models")


def ls(
    context: typer.Context,
    model: ModelName = None,
    node: NodeName = None,
    file: SpecFile = DEFAULT_SPEC,
    as_json: AsJson = False,
    deadline: Deadline = DEFAULT_DEADLINE_S,
) -> None:
    """Look, judge, show."""
    from reconciler.core.exits import Exit
    from reconciler.core.unknown import unreachable
    from reconciler.views.model_text import model_stock_json, model_stock_text

    fleet = _loaded(context, file, model, node)
    found = run(context, with_fleet(fleet, lambda fleet: _stock(fleet, model, node, deadline)))
    say(model_stock_json(found) if as_json else model_stock_text(found))
    raise typer.Exit(Exit.UNREACHABLE if unreachable(found.unknown) else Exit.OK)


def verify(
    context: typer.Context,
    model: ModelName = None,
    node: NodeName = None,
    file: SpecFile = DEFAULT_SPEC,
    as_json: AsJson = False,
    deadline: Deadline = DEFAULT_DEADLINE_S,
) -> None:
    """Look, read, judge, show as it comes."""
    from reconciler.views.model_text import proof_text, proofs_json

    async def work(fleet: "Fleet") -> int:
        from reconciler.model_stock import prove

        found = await _stock(fleet, model, node, deadline)
        for state in () if as_json else found.unknown:
            say(proof_text(state))
        on_proof = (lambda proof: None) if as_json else (lambda proof: say(proof_text(proof)))
        proofs = (*found.unknown, *await prove(fleet, found.expected, _tell, on_proof))
        if as_json:
            say(proofs_json(fleet.desired.fleet, proofs))
        return _exit(proofs)

    raise typer.Exit(run(context, with_fleet(_loaded(context, file, model, node), work)))


def sync(
    context: typer.Context,
    model: ModelName = None,
    cluster: Clusters = None,
    file: SpecFile = DEFAULT_SPEC,
    yes: Yes = False,
    as_json: AsJson = False,
    deadline: Deadline = DEFAULT_DEADLINE_S,
    events: Events = None,
) -> None:
    """Plan the copies alone, ask, carry them out."""
    from reconciler.core.options import PlanOptions
    from reconciler.version import TOOL

    fleet = _loaded(context, file, model, None)
    must_be_known("cluster", cluster or (), fleet.spec.clusters)
    options = PlanOptions(TOOL, commit_of(fleet))

    async def work(fleet: "Fleet") -> int:
        from reconciler.core.model_sync import make_model_sync_plan

        observed = await fleet.observe(deadline)
        models, clusters = frozenset([model] if model else []), frozenset(cluster) if cluster else None
        made = make_model_sync_plan(fleet.desired, observed, models, clusters, options)
        return await carry_out(fleet, made, yes=yes, as_json=as_json, command="models sync", question="Copy them?")

    raise typer.Exit(run(context, with_fleet(fleet, work)))


def _loaded(context: typer.Context, file: Path, model: str | None, node: str | None) -> "Fleet":
    fleet = load(context, file)
    must_be_known("model", [model] if model else [], fleet.spec.models)
    must_be_known("node", [node] if node else [], fleet.spec.nodes)
    return fleet


async def _stock(fleet: "Fleet", model: str | None, node: str | None, deadline_s: float) -> "ModelStock":
    from reconciler.model_stock import stock

    return await stock(fleet, [model] if model else (), [node] if node else (), deadline_s)


def _tell(node: str, model: str, news: "Progress") -> None:
    from reconciler.views.words import size

    if news.doing.startswith("hashing"):
        warn(f"{node}: {model}: {news.doing} ({size(news.done_bytes)} done)")


def _exit(proofs: "tuple[Proof | Unknown, ...]") -> int:
    from reconciler.core.exits import Exit
    from reconciler.core.observed import Unknown
    from reconciler.core.unknown import unreachable

    if any(not isinstance(item, Unknown) and item.faults for item in proofs):
        return int(Exit.CHANGES)
    return int(Exit.UNREACHABLE if unreachable(proofs) else Exit.OK)
