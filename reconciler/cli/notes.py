"""What a command says beside its output, to whoever reads it: on standard error, so that outputs stay as they are."""

from typing import TYPE_CHECKING

from reconciler.cli.wiring import warn

if TYPE_CHECKING:
    from reconciler.core.observed import Observed
    from reconciler.fleet import Fleet
    from reconciler.history import Recorded


def tell_of_secrets(fleet: "Fleet", observed: "Observed") -> None:
    """Say of which secrets it is not known whether they changed, and why: they change no plan."""
    from reconciler.core.secret_notes import secret_notes

    for note in secret_notes(fleet.desired, observed):
        warn(note)


def tell_of_suspension(known: "Recorded") -> None:
    """Say that the agent of `fleet gitops` is kept off: it stops no person."""
    from reconciler.holds import suspended
    from reconciler.views.words import one_line

    if known.suspended is not None:
        warn(one_line(f"the agent is {suspended(known.suspended)}; that binds no person"))
