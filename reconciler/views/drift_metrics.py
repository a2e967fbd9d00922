"""A report of drift as metrics in Prometheus' text format, for the textfile collector of the node exporter.

How many rows there are depends on the spec alone: one for each lane and node, and one for each class and severity.
"""

from collections import Counter
from collections.abc import Iterable, Iterator

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.exposition import generate_latest
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector, CollectorRegistry

from reconciler.core.drift.finding import Kind, Severity
from reconciler.core.drift.report import Report
from reconciler.core.gate import Health
from reconciler.core.status import Reach

SUCCESS = "fleet_drift_last_success_timestamp_seconds"

UNKNOWN = float("nan")
"""Neither up nor down: no comparison in an alert holds for it."""


def drift_metrics(report: Report, duration_s: float, before: str = "") -> str:
    """The text. `duration_s`: how long the look took, in seconds; `before`: the text of the last time, which says when
    a look came to its end, where this one did not."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Rows([*_of_look(report, duration_s, before), *_of_findings(report), *_of_fleet(report)]))
    return generate_latest(registry).decode()


def last_success(text: str, fleet: str) -> float | None:
    """When a look last came to its end (seconds since 1970), by metrics written before; None where they do not say."""
    try:
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                if sample.name == SUCCESS and sample.labels.get("fleet") == fleet:
                    return float(sample.value)
    except ValueError:
        return None
    return None


class _Rows(Collector):
    """Families that are there already, as a registry wants them."""

    def __init__(self, families: Iterable[Metric]) -> None:
        self._families = tuple(families)

    def collect(self) -> Iterable[Metric]:
        """See `Collector.collect`."""
        return self._families


def _of_look(report: Report, duration_s: float, before: str) -> Iterator[Metric]:
    success = last_success(before, report.fleet) if report.missing else report.at_s
    if success is not None:
        yield _single(report, SUCCESS, "When a look for drift last came to its end.", success)
    yield _single(report, "fleet_drift_last_run_timestamp_seconds", "When the fleet was looked at.", report.at_s)
    yield _single(report, "fleet_drift_duration_seconds", "How long the look took.", duration_s)
    complete = float(not report.missing)
    yield _single(report, "fleet_drift_complete", "Whether there was time to look at everything.", complete)


def _of_findings(report: Report) -> Iterator[Metric]:
    found = Counter((item.kind, item.severity) for item in report.findings)
    rows = GaugeMetricFamily(
        "fleet_drift_findings", "What is not as wanted, by class.", labels=("fleet", "class", "severity")
    )
    for kind in Kind:
        for severity in Severity:
            rows.add_metric((report.fleet, kind, severity), found[kind, severity])
    yield rows
    suppressed = sum(item.count for item in report.suppressed)
    yield _single(report, "fleet_drift_suppressed", "Findings that rules of the spec let pass.", suppressed)
    yield _single(report, "fleet_drift_rules_expired", "Rules whose day has passed.", len(report.expired))


def _of_fleet(report: Report) -> Iterator[Metric]:
    lanes = GaugeMetricFamily(
        "fleet_lane_up", "1: the lane serves; NaN: its nodes do not tell.", labels=("fleet", "cluster", "lane")
    )
    for lane in report.status.lanes:
        is_known = lane.reach is Reach.REACHABLE and lane.health is not Health.UNKNOWN
        up = float(lane.health is Health.HEALTHY) if is_known else UNKNOWN
        lanes.add_metric((report.fleet, lane.cluster, lane.lane), up)
    yield lanes
    nodes = GaugeMetricFamily("fleet_node_reachable", "Whether the node answers.", labels=("fleet", "node"))
    off = GaugeMetricFamily("fleet_node_off", "Whether the spec declares the node off.", labels=("fleet", "node"))
    for node in report.nodes:
        off.add_metric((report.fleet, node.name), float(node.reach == "off"))
        if node.reach != "off":
            nodes.add_metric((report.fleet, node.name), float(node.reach == "reachable"))
    yield nodes
    yield off


def _single(report: Report, name: str, about: str, value: float) -> Metric:
    family = GaugeMetricFamily(name, about, labels=("fleet",))
    family.add_metric((report.fleet,), value)
    return family
