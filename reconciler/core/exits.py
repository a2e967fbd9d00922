"""Exit codes, in a module of their own: every start of the command line needs them, and nothing else of the core."""

from enum import IntEnum


class Exit(IntEnum):
    """Exit codes of every command. Frozen: scripts depend on them."""

    OK = 0
    ERROR = 1
    CHANGES = 2
    REFUSED = 3
    UNREACHABLE = 4
    LEASE_HELD = 5
    UNCHANGED = 6
    NEEDS_A_PERSON = 7
    INTERRUPTED = 130
