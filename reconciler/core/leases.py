"""Leases as values: who has the right to change a node, and what for."""

from dataclasses import dataclass

from reconciler.core.figures import duration
from reconciler.core.observed import Unknown

UNKNOWN = "unknown"


@dataclass(frozen=True)
class Claim:
    """Who wants a lease: "ops@laptop", "apply of plan 1a2b", and the run, which no other controller shares."""

    owner: str
    purpose: str
    run_id: str


@dataclass(frozen=True)
class Holder:
    """Who has a lease. `age_s`: for how long, by the node's own clock; None where the node's note of it is damaged.

    `fence`: the claim's number on the node, greater than that of every claim before it.
    """

    claim: Claim
    fence: int
    age_s: float | None

    @property
    def told(self) -> str:
        """Who, since when and what for, as part of a sentence."""
        since = f" for {duration(round(self.age_s))}" if self.age_s is not None else ""
        return f"{self.claim.owner}{since}: {self.claim.purpose} (run {self.claim.run_id})"


@dataclass(frozen=True)
class NodeLease:
    """The lease of a node as it is now. `unknown`: why nothing is known of it."""

    node: str
    holder: Holder | None
    unknown: Unknown | None = None


NOBODY_KNOWN = Claim(UNKNOWN, UNKNOWN, UNKNOWN)
"""The claim of a holder whose note on the node is damaged."""
