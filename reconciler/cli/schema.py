"""`fleet schema`: the JSON Schema of the spec, for editors."""

import typer

from reconciler.cli.wiring import say_json


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("schema", help="Print the JSON Schema of the spec, for editors.")(schema)


def schema() -> None:
    """Print the schema."""
    import specs

    say_json(specs.json_schema())
