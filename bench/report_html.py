"""What a bad day weighs: the HTML report of 1,000 findings on 64 nodes, against 600 kB, which any mail lets through."""

from collections.abc import Iterator
from itertools import count, islice

from bench.measure import Measured
from reconciler.core.drift import ClusterDrawn, Finding, Kind, NodeDrawn, Past, Report, Severity
from reconciler.core.gate import Health
from reconciler.core.status import FleetStatus, LaneStatus, RankStatus, Reach, Sync
from reconciler.views.drift_html import drift_html

NAMES = ("report_html_1000_findings_kb",)
GOAL_BYTES = 600_000
NODES, WIDE = 64, 4
"""Nodes of the fleet, and of each cluster."""
DIGESTS = ("sha256:" + "c977a2d2" * 8, "sha256:" + "1f00beef" * 8)
EVIDENCE = "the live container's settings, read by inspect"
FIELDS = (
    (Kind.CONFIG, "env.VLLM_KV_CACHE_LAYOUT", "BLHNC", "NHD"),
    (Kind.CONFIG, "args", "--max-num-seqs 16 --kv-cache-dtype bfloat16", "--max-num-seqs 64 --kv-cache-dtype fp8"),
    (Kind.CONFIG, "mounts./models", "/mnt/nas/ai/huggingface:/models:ro", "/home/ops/models:/models:rw"),
    (Kind.CONFIG, "restart", "no", "unless-stopped"),
    (Kind.IDENTITY, "image", *DIGESTS),
    (Kind.IDENTITY, "model.config.json", *DIGESTS),
    (Kind.RUNTIME, "state", "running", "exited with 137 (out of memory)"),
)


def measure() -> list[Measured]:
    """Bytes of the page."""
    size = len(drift_html(large()).encode())
    return [Measured(NAMES[0], 1.0, "600 kB", float(size), float(GOAL_BYTES), "kB")]


def large(findings: int = 1000) -> Report:
    """Every lane has drifted in every way, with long values; a month of reports lies behind it."""
    names = [f"dgx{number:03}" for number in range(NODES)]
    clusters = tuple(ClusterDrawn(f"rack{at // WIDE:02}", tuple(names[at : at + WIDE])) for at in range(0, NODES, WIDE))
    status = FleetStatus("dgx-lab", tuple(_lane(cluster) for cluster in clusters), (), (), ())
    found = tuple(islice(_findings(clusters), findings))
    return Report(
        fleet="dgx-lab",
        at_s=1_796_040_000.0,
        commit="4f2c1ab09d3e7731b5d2c6a19f0e8d7c6b5a4f3e",
        spec="9d41f2c07a3be15c0f66a1d4be90873ab5cc",
        tool="fleet",
        findings=found,
        suppressed=(),
        expired=(),
        status=status,
        clusters=clusters,
        nodes=tuple(NodeDrawn(name, "reachable") for name in names),
        history=tuple(Past(1_796_040_000.0 - 3600 * n, dict.fromkeys(Kind, n), n % 2) for n in range(30, 0, -1)),
        new=frozenset(item.id for item in found[::3]),
    )


def _lane(cluster: ClusterDrawn) -> LaneStatus:
    ranks = tuple(
        RankStatus(number, node, "worker", "c", Sync.OUT_OF_SYNC, Health.DEGRADED, Reach.REACHABLE, "exited with 137")
        for number, node in enumerate(cluster.nodes)
    )
    axes = (Sync.OUT_OF_SYNC, Health.DEGRADED, Reach.REACHABLE)
    address = f"{cluster.name}/mimo26-flash-4x"
    detail = "rank 3 exited with 137 (out of memory)"
    return LaneStatus(address, "mimo26-flash-4x", cluster.name, "http://a:1/v1", "mimo", *axes, detail, ranks)


def _findings(clusters: tuple[ClusterDrawn, ...]) -> Iterator[Finding]:
    """Without end; the fields repeat with a number in them."""
    severities = tuple(Severity)
    for turn in count():
        for cluster in clusters:
            for number, node in enumerate(cluster.nodes):
                address = f"{cluster.name}/mimo26-flash-4x/{number}@{node}"
                for at, (kind, field, expected, found) in enumerate(FIELDS):
                    yield Finding(
                        kind,
                        address,
                        f"{field}.{turn}" if turn else field,
                        expected,
                        found,
                        "replaces the gang: dark for about 4m10s",
                        "2026-11-30T09:12:44Z",
                        EVIDENCE,
                        severities[(at + number) % len(severities)],
                    )
