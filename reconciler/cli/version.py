"""`fleet version`."""

import typer

from reconciler.cli.wiring import AsJson, say, say_json


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("version", help="Print the version.")(version)


def version(as_json: AsJson = False) -> None:
    """Print the version."""
    from reconciler import version as home

    if as_json:
        say_json({"fleet": home.version()})
    else:
        say(f"{home.TOOL}\n")
