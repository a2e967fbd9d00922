"""What a policy says against a plan, as a value."""

from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    """How much an objection weighs. Values are stable: they are in specs and in JSON outputs."""

    ADVISORY = "advisory"  # it is shown
    MANDATORY = "mandatory"  # nothing of the plan is carried out


@dataclass(frozen=True)
class Objection:
    """What is wrong, and what to do. `gang`: the placement it is about; empty for the plan as a whole.

    `policy` and `level` are filled in by who asks: a policy need not name itself.
    """

    summary: str
    gang: str = ""
    hint: str = ""
    policy: str = ""
    level: Level = Level.MANDATORY

    def __str__(self) -> str:
        about = f"{self.gang}: " if self.gang else ""
        return f"{about}{self.summary}"
