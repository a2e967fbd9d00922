"""The commands, put together. Only argument declarations are imported here; a command imports its work when it runs."""

import typer

from reconciler.cli import (
    apply,
    doctor,
    down,
    drift,
    gitops,
    history,
    hold,
    images,
    lease,
    logs,
    models,
    pin,
    plan,
    resume,
    rollback,
    schema,
    show,
    state,
    status,
    suspend,
    validate,
    version,
)

app = typer.Typer(
    name="fleet",
    help="Declare which LLM lane runs on which GPU nodes; see the difference; carry it out over SSH and Docker.",
    epilog="Exit codes: 0 done, 1 error, 2 changes or drift, 3 refused or withheld, 4 some nodes could not be read, "
    "5 somebody else has the lease of a node, 6 failed, and the fleet serves what it served before, "
    "7 failed, and needs a person, 130 interrupted.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

for module in (
    validate,
    plan,
    apply,
    resume,
    rollback,
    status,
    doctor,
    hold,
    lease,
    logs,
    down,
    drift,
    images,
    models,
    pin,
    history,
    show,
    state,
    gitops,
    suspend,
    schema,
    version,
):
    module.register(app)


def _in_whole(commands: typer.Typer) -> None:
    """A list of commands shows the first sentence of each help, however long; left alone, it would be cut at a line."""
    for command in commands.registered_commands:
        command.short_help = (command.help or "").partition("\n")[0].partition(". ")[0].removesuffix(".") + "."
    for inner in commands.registered_groups:
        if inner.typer_instance is not None:
            _in_whole(inner.typer_instance)


_in_whole(app)
