"""What can go wrong with the recorded state, in words for the person who has to act."""

import shlex
from pathlib import Path

HARMLESS = "The nodes carry the truth: deleting the state changes no plan, only history and time estimates are lost."


class StateError(Exception):
    """The state cannot be read or written. `summary` says what happened, `hint` what a person can do."""

    def __init__(self, summary: str, hint: str = "") -> None:
        super().__init__(summary)
        self.summary = summary
        self.hint = hint


class MisuseError(StateError):
    """A caller broke the journal's rules (an outcome without an intent, say): a bug of the tool, not of its user."""


def start_anew(file: Path, first: str = "") -> str:
    """The hint for an unusable file: what to try `first`, then the one command to go on without it."""
    command = f"mv {shlex.quote(str(file))} {shlex.quote(f'{file}.broken')}"
    lead = f"{first} Otherwise start" if first else "Start"
    return f"{lead} anew with `{command}`. {HARMLESS}"
