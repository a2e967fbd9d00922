"""What a command says beside its output, to whoever reads it: on standard error, so that outputs stay as they are."""

from typing import TYPE_CHECKING

from reconciler.cli.wiring import warn

if TYPE_CHECKING:
    from reconciler.core.observed import Observed
    from reconciler.fleet import Fleet


def tell_of_secrets(fleet: "Fleet", observed: "Observed") -> None:
    """Say of which secrets it is not known whether they changed, and why: they change no plan."""
    from reconciler.core.secret_notes import secret_notes

    for note in secret_notes(fleet.desired, observed):
        warn(note)
