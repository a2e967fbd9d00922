"""What was recorded: runs, the journal of their effects, the revisions they proved, holds and quarantine.

History and estimates only. The nodes carry the truth, so deleting the state changes no plan.
"""

from state.checks import Outcome, Snapshot, findings
from state.errors import MisuseError, StateError
from state.location import Location, Postgres, locate
from state.memory import MemoryStore
from state.opening import FILE, open_store, read_store
from state.protocol import REPORTS, Store
from state.records import Entry, Hold, Intent, Measure, Memory, PastReport, PlanClaim, Quarantine, Revision, Run

__all__ = [
    "FILE",
    "REPORTS",
    "Entry",
    "Hold",
    "Intent",
    "Location",
    "Measure",
    "Memory",
    "MemoryStore",
    "MisuseError",
    "Outcome",
    "PastReport",
    "PlanClaim",
    "Postgres",
    "Quarantine",
    "Revision",
    "Run",
    "Snapshot",
    "StateError",
    "Store",
    "findings",
    "locate",
    "open_store",
    "read_store",
]
