"""What was recorded: runs, the journal of their effects, and the revisions they proved.

History and estimates only. The nodes carry the truth, so deleting the state changes no plan.
"""

from state.checks import Outcome, Snapshot, findings
from state.errors import MisuseError, StateError
from state.memory import MemoryStore
from state.opening import open_store, read_store
from state.protocol import Store
from state.records import Entry, Revision, Run

__all__ = [
    "Entry",
    "MemoryStore",
    "MisuseError",
    "Outcome",
    "Revision",
    "Run",
    "Snapshot",
    "StateError",
    "Store",
    "findings",
    "open_store",
    "read_store",
]
