"""Metrics of a report: what a Prometheus reads of them, whatever names there are."""

import math
from dataclasses import replace

from prometheus_client.parser import text_string_to_metric_families

from reconciler.core.drift import Ignore, Kind, Severity, Suppressed
from reconciler.views.drift_metrics import drift_metrics, last_success
from tests.unit.core.drift_reports import finding, report

Rows = dict[tuple[str, ...], float]


def rows(text: str) -> Rows:
    """Every sample: name and values of labels (sorted by label); each only once, each family with type and help."""
    found: Rows = {}
    for family in text_string_to_metric_families(text):
        assert ("gauge", True) == (family.type, bool(family.documentation))
        for sample in family.samples:
            key = (sample.name, *(value for _, value in sorted(sample.labels.items())))
            assert key not in found
            found[key] = sample.value
    return found


def test_findings_are_counted_by_class_and_severity_also_where_there_are_none() -> None:
    found = rows(drift_metrics(report([finding("pair-a/pair"), finding("node1", kind=Kind.HOST)]), 1.5))
    counts = {(key[1], key[3]): value for key, value in found.items() if key[0] == "fleet_drift_findings"}
    assert len(Kind) * len(Severity) == len(counts)
    assert {("runtime", "degraded"): 1.0, ("host", "degraded"): 1.0} == {k: v for k, v in counts.items() if v}
    assert 1.5 == found["fleet_drift_duration_seconds", "lab"]


def test_what_nobody_can_tell_is_neither_up_nor_down_and_a_node_declared_off_is_not_unreachable() -> None:
    found = rows(drift_metrics(report(unreachable=["node2"], off=["node3"]), 1.0))
    assert 1.0 == found["fleet_node_reachable", "lab", "node1"]
    assert 0.0 == found["fleet_node_reachable", "lab", "node2"]
    assert ("fleet_node_reachable", "lab", "node3") not in found
    assert 1.0 == found["fleet_node_off", "lab", "node3"]
    assert math.isnan(found["fleet_lane_up", "pair-a", "lab", "pair"])
    assert 1.0 == rows(drift_metrics(report(), 1.0))["fleet_lane_up", "pair-a", "lab", "pair"]


def test_hostile_names_are_values_of_labels_and_nothing_else() -> None:
    name = 'a"} 1\nfake_metric{x="\\'
    found = rows(drift_metrics(report(name=name), 1.0))
    assert 1.0 == found["fleet_drift_complete", name]
    assert not any(key[0] == "fake_metric" for key in found)


def test_a_look_without_an_end_keeps_the_time_of_the_last_that_had_one() -> None:
    whole = drift_metrics(report(at_s=1000.0), 1.0)
    assert 1000.0 == last_success(whole, "lab")
    cut = drift_metrics(report(at_s=2000.0, missing=["health"]), 1.0, whole)
    assert 1000.0 == last_success(cut, "lab")
    assert 2000.0 == rows(cut)["fleet_drift_last_run_timestamp_seconds", "lab"]
    assert 0.0 == rows(cut)["fleet_drift_complete", "lab"]
    assert None is last_success(drift_metrics(report(missing=["health"]), 1.0, "no { metrics"), "lab")
    assert None is last_success(whole, "other")


def test_rules_of_the_spec_are_counted() -> None:
    rule = Ignore("config", "*", "*", "known", "2027-01-01")
    found = rows(drift_metrics(replace(report(), suppressed=(Suppressed(rule, 3),), expired=(rule,)), 1.0))
    assert (3.0, 1.0) == (found["fleet_drift_suppressed", "lab"], found["fleet_drift_rules_expired", "lab"])
