"""Failures of a node, typed twice: whose fault it is, and whether another try is worth it.

Transport (the connection was lost: the effect may have happened) is never mixed up with the remote side's own answer
(it said no: the effect did not happen).
"""

import re
from enum import StrEnum

from reconciler.core.leases import Holder
from reconciler.core.observed import Unknown, UnknownKind

_CONTAINER_ID = re.compile(r"(?<![\w.:-])([0-9a-f]{12})[0-9a-f]{52}(?![\w-])")


def short_ids(text: str) -> str:
    """The text with ids of containers as `docker ps` shows them; names and digests (`sha256:...`) stay whole."""
    return _CONTAINER_ID.sub(r"\1", text)


class ErrorKind(StrEnum):
    """What kind of answer or silence it was. Values are stable: they are in JSON outputs."""

    LOST = "lost"  # transport: the effect may or may not have happened
    TIMEOUT = "timeout"  # transport: no answer within the deadline
    CONFLICT = "conflict"  # the name or port is taken
    NOT_FOUND = "not-found"  # no such image or container
    NO_SPACE = "no-space"  # the disk is full
    DENIED = "denied"  # no permission
    REFUSED = "refused"  # the remote side said no for another reason
    HELD = "held"  # somebody else has the lease
    LEASE_LOST = "lease-lost"  # the lease is not ours any more, or was not ours for a while


TRANSPORT = frozenset({ErrorKind.LOST, ErrorKind.TIMEOUT})


class NodeError(Exception):
    """An effect or a reading failed. `message` says what happened, `hint` what a person can do."""

    def __init__(self, kind: ErrorKind, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.hint = hint

    @property
    def is_transport(self) -> bool:
        """Whether the effect may have happened all the same."""
        return self.kind in TRANSPORT

    def as_unknown(self, node: str) -> Unknown:
        """The node as a fact, when the failure was in reading it."""
        kind = UnknownKind.TIMEOUT if self.kind is ErrorKind.TIMEOUT else UnknownKind.LOST
        return Unknown(node, kind if self.is_transport else UnknownKind.BAD_REPLY, self.message, self.hint)


class NodeUnknownError(NodeError):
    """A session could not be had: the node is a fact of kind `Unknown`, with the exact reason."""

    def __init__(self, fact: Unknown) -> None:
        kind = ErrorKind.TIMEOUT if fact.kind is UnknownKind.TIMEOUT else ErrorKind.LOST
        super().__init__(kind, fact.reason, fact.hint)
        self.fact = fact

    def as_unknown(self, node: str) -> Unknown:
        """The fact itself."""
        return self.fact


class LeaseHeldError(NodeError):
    """Somebody else has the lease of the node: nothing was changed there."""

    def __init__(self, node: str, holder: Holder) -> None:
        hint = f"wait for it with --wait; when that run is gone for good, `fleet lease break {node}`"
        super().__init__(ErrorKind.HELD, f"{node} is leased by {holder.told}", hint)
        self.node = node
        self.holder = holder


class LeaseLostError(NodeError):
    """The lease is lost: what this run knew of the node may be outdated. Nothing was changed there.

    `is_reboot`: the node was booted meanwhile, and nobody else is known to have changed it.
    """

    def __init__(self, message: str, hint: str = "", *, is_reboot: bool = False) -> None:
        super().__init__(ErrorKind.LEASE_LOST, message, hint)
        self.is_reboot = is_reboot
