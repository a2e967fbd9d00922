"""`fleet validate`: check the spec, contact nothing."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from reconciler.cli.wiring import DEFAULT_SPEC, AsJson, SpecFile, load, say, say_json

if TYPE_CHECKING:
    import specs

HELP = """Check the spec: every error with its place, all at once. Contacts nothing.

What only nodes, registry and models can tell, `fleet plan` and `fleet doctor` check.

For example: fleet validate --file examples/dgx-lab/fleet.yaml
"""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("validate", help=HELP)(validate)


def validate(context: typer.Context, file: SpecFile = DEFAULT_SPEC, as_json: AsJson = False) -> None:
    """Load the spec and say what is wrong with it."""
    import specs

    try:
        fleet = load(context, file)
    except (specs.SpecErrors, FileNotFoundError) as error:
        if not as_json:
            raise
        found = error.diagnostics if isinstance(error, specs.SpecErrors) else (_missing(file, error),)
        say_json({"valid": False, "diagnostics": [item.to_dict() for item in found]})
        raise typer.Exit(1) from None
    if as_json:
        say_json({"valid": True, "diagnostics": [], "fingerprint": fleet.spec.fingerprint})
        return
    from reconciler.views.words import count

    spec = fleet.spec
    parts = (count(len(spec.nodes), "node"), count(len(spec.clusters), "cluster"), count(len(spec.lanes), "lane"))
    say(f"{file}: valid: {', '.join(parts)}, {len(spec.placements)} placed\n")


def _missing(file: Path, error: FileNotFoundError) -> "specs.Diagnostic":
    import specs

    return specs.Diagnostic(file, 0, 0, str(error))
