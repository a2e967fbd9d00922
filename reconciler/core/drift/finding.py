"""One thing that is not as wanted: its class, its place, how we know, and how bad it is."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from reconciler.core.canonical import fingerprint


class Kind(StrEnum):
    """What moved: the spec's intent, a container's settings, its content, its life, or the machine below."""

    INTENT = "intent"
    CONFIG = "config"
    IDENTITY = "identity"
    RUNTIME = "runtime"
    HOST = "host"


class Severity(StrEnum):
    """How bad it is, the worst first. `OUTAGE`: a wanted lane does not serve. `DEGRADED`: it serves, and something of
    it is wrong or about to be; or nobody can tell whether it serves. `NOTICE`: somebody should know."""

    OUTAGE = "outage"
    DEGRADED = "degraded"
    NOTICE = "notice"


@dataclass(frozen=True)
class Finding:
    """One thing that is not as wanted. `remedy`: what `fleet apply` would do about it.

    `since`: from when it is so, by the clock of its node (RFC 3339); empty where nothing tells. `evidence`: how we
    know. `sign`: what stands for `found` in the id where `found` holds a figure that moves; None: `found` itself.
    """

    kind: Kind
    address: str
    field: str
    expected: str
    found: str
    remedy: str
    since: str = ""
    evidence: str = ""
    severity: Severity = Severity.DEGRADED
    sign: str | None = None

    @property
    def id(self) -> str:
        """Twelve digits that stay the same while the finding does: no time and no counter is in them."""
        sign = self.found if self.sign is None else self.sign
        return fingerprint([self.kind, self.address, self.field, self.expected, sign])[:12]


def worst_first(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Outages before what is degraded before notices; among equals by class, address and field."""
    severities, kinds = list(Severity), list(Kind)
    return tuple(
        sorted(
            findings,
            key=lambda item: (
                severities.index(item.severity),
                kinds.index(item.kind),
                item.address,
                item.field,
                item.found,
            ),
        )
    )
