"""`fleet schema`: the JSON Schema of the spec, for editors; and of events, for what reads them."""

from enum import StrEnum
from typing import Annotated

import typer

from reconciler.cli.wiring import say_json


class Of(StrEnum):
    """What there is a schema of."""

    SPEC = "spec"
    EVENTS = "events"


Whose = Annotated[Of, typer.Argument(help="The spec, or a line of what `--events FILE` writes.")]

HELP = """Print the JSON Schema of the spec, for editors; or of events, for programs that read them.

For example: fleet schema events
"""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("schema", help=HELP)(schema)


def schema(of: Whose = Of.SPEC) -> None:
    """Print the schema."""
    if of is Of.EVENTS:
        from reconciler.views.event_schema import event_schema

        say_json(event_schema())
    else:
        import specs

        say_json(specs.json_schema())
