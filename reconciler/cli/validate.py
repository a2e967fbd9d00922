"""`fleet validate`: check the spec, contact nothing."""

import typer

from reconciler.cli.wiring import DEFAULT_SPEC, AsJson, SpecFile, load, say, say_json


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("validate", help="Check the spec: every error with its place, all at once. Contacts nothing.")(validate)


def validate(context: typer.Context, file: SpecFile = DEFAULT_SPEC, as_json: AsJson = False) -> None:
    """Load the spec and say what is wrong with it."""
    import specs

    try:
        fleet = load(context, file)
    except specs.SpecErrors as errors:
        if not as_json:
            raise
        say_json({"valid": False, "diagnostics": [item.to_dict() for item in errors.diagnostics]})
        raise typer.Exit(1) from None
    if as_json:
        say_json({"valid": True, "diagnostics": [], "fingerprint": fleet.spec.fingerprint})
        return
    say(
        f"{file}: valid: {len(fleet.spec.nodes)} nodes, {len(fleet.spec.clusters)} clusters, "
        f"{len(fleet.spec.lanes)} lanes, {len(fleet.spec.placements)} placed\n"
    )
