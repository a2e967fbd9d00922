"""Reports of drift for tests, of two lanes on three nodes."""

from collections.abc import Iterable

from reconciler.core.drift import Finding, Kind, NodeDrawn, Report, Severity
from reconciler.core.gate import Health
from reconciler.core.status import FleetStatus, LaneStatus, Reach, Sync

NODES = {"node1": "pair-a", "node2": "pair-a", "node3": "single-3"}
LANES = {"pair-a": "pair", "single-3": "solo"}


def finding(
    address: str, field: str = "state", kind: Kind = Kind.RUNTIME, severity: Severity = Severity.DEGRADED, **more: str
) -> Finding:
    """One at an address."""
    return Finding(
        kind, address, field, "running", more.pop("found", "exited 137"), "boot it", severity=severity, **more
    )


def report(
    findings: Iterable[Finding] = (),
    *,
    unreachable: Iterable[str] = (),
    off: Iterable[str] = (),
    missing: Iterable[str] = (),
    at_s: float = 1000.0,
    name: str = "lab",
) -> Report:
    """One with these findings; some nodes do not answer, or are declared off."""
    silent, dark = set(unreachable), set(off)
    nodes = tuple(
        NodeDrawn(node, "unreachable" if node in silent else "off" if node in dark else "reachable") for node in NODES
    )
    hidden = {NODES[node] for node in silent | dark}
    lanes = tuple(lane(cluster, is_hidden=cluster in hidden) for cluster in LANES)
    status = FleetStatus(name, lanes, (), (), ())
    return Report(
        name, at_s, None, "spec", "fleet 0", tuple(findings), (), (), status, (), nodes, missing=tuple(missing)
    )


def lane(cluster: str, *, is_hidden: bool) -> LaneStatus:
    """A healthy one, unless nobody can tell."""
    name = LANES[cluster]
    health, sync = (Health.UNKNOWN, Sync.UNKNOWN) if is_hidden else (Health.HEALTHY, Sync.IN_SYNC)
    reach = Reach.UNREACHABLE if is_hidden else Reach.REACHABLE
    return LaneStatus(f"{cluster}/{name}", name, cluster, "http://a:1", None, sync, health, reach, "", ())
