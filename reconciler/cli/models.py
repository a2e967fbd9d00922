"""`fleet models`: which model is where, and whether it is what it should be."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from reconciler.cli.targets import must_be_known
from reconciler.cli.wiring import (
    DEFAULT_DEADLINE_S,
    DEFAULT_SPEC,
    AsJson,
    Deadline,
    SpecFile,
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

ModelName = Annotated[str | None, typer.Argument(metavar="[MODEL]", help="Only this model.", show_default=False)]
NodeName = Annotated[str | None, typer.Option("--node", metavar="NODE", help="Only on this node.")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    models = typer.Typer(
        help="See models on the nodes, prove them.",
        callback=_without_a_verb,
        invoke_without_command=True,
        rich_markup_mode=None,
    )
    models.command("ls", help=LS)(ls)
    models.command("verify", help=VERIFY)(verify)
    app.add_typer(models, name="models")


def _without_a_verb(context: typer.Context) -> None:
    """What there is to say."""
    from reconciler.core.exits import Exit

    if context.invoked_subcommand is None:
        say(f"{context.get_help()}\n")
        raise typer.Exit(Exit.ERROR)


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
    from reconciler.views.model_text import model_stock_json, model_stock_text

    fleet = _loaded(context, file, model, node)
    found = run(context, with_fleet(fleet, lambda fleet: _stock(fleet, model, node, deadline)))
    say(model_stock_json(found) if as_json else model_stock_text(found))
    raise typer.Exit(Exit.UNREACHABLE if found.unknown else Exit.OK)


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

    if any(not isinstance(item, Unknown) and item.faults for item in proofs):
        return int(Exit.CHANGES)
    return int(Exit.UNREACHABLE if any(isinstance(item, Unknown) for item in proofs) else Exit.OK)
