"""The HTML page as text: one file, every value escaped, allowed nothing but its own style and script; and not heavy."""

import base64
import hashlib
import re
from dataclasses import replace

import pytest

from bench import report_html
from reconciler.core.drift import ClusterDrawn, NodeDrawn, Report
from reconciler.core.drift.failing import ANY, FailOn, fail_on
from reconciler.core.status import Unwanted
from reconciler.views.drift_drawn import CHARTED, cards, charts
from reconciler.views.drift_html import drift_html
from tests.unit.views import drifting


def between(page: str, tag: str) -> list[str]:
    return re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.S)


def test_the_page_allows_only_its_own_style_and_script() -> None:
    page = drift_html(drifting.hostile())
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    for kind in ("style", "script"):
        (text,) = between(page, kind)
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none'; ")
    assert 1 == page.count("<script") == page.count("</script>")


def test_the_page_names_nothing_to_load() -> None:
    page = drift_html(drifting.demo())
    targets = re.findall(r"(?:src|href)=([^\s>]+)", page)
    assert 20 < len(targets)
    assert [] == [target for target in targets if not target.startswith(('"#', '"data:'))]
    assert set(re.findall(r"https?://[^'\"\s]+", page)) <= {"http://www.w3.org/2000/svg"}


def test_hostile_values_are_spelled_out_and_the_page_can_be_written() -> None:
    page = drift_html(replace(drifting.hostile(), fleet="half \ud800"))
    assert "half \\ud800" in page.encode().decode()
    assert [] == sorted({char for char in page if char != "\n" and not char.isprintable()})


@pytest.mark.parametrize(
    "made", [drifting.demo(), drifting.calm(), drifting.hostile()], ids=["demo", "calm", "hostile"]
)
def test_every_finding_is_there_once(made: Report) -> None:
    page = drift_html(made)
    assert sorted(item.id for item in made.findings) == sorted(re.findall(r'<li id="([0-9a-f]{12})"', page))


def test_the_same_report_is_the_same_page() -> None:
    assert drift_html(drifting.demo()) == drift_html(drifting.demo())


def test_a_thousand_findings_weigh_less_than_600_kb() -> None:
    (row,) = report_html.measure()
    assert 1000 == len(report_html.large().findings)
    assert row.ratio < 0.75


def test_a_node_of_two_clusters_is_drawn_in_both() -> None:
    drawn = {card.name: {tile.node.name: tile.elsewhere for tile in card.tiles} for card in cards(drifting.demo())}
    assert ("dac",) == drawn["4nodes-switch"]["dgx1"]
    assert ("4nodes-switch",) == drawn["dac"]["dgx1"]
    assert () == drawn["4nodes-switch"]["dgx3"]


TONES = {"4nodes-switch": "warn", "dac": "busy", "dgx56": "bad", "solo-7": "warn", "spare": "dim"}


def test_a_cluster_looks_as_the_worst_of_its_lanes() -> None:
    assert TONES == {card.name: card.tone for card in cards(drifting.demo())}


def test_nodes_and_lanes_that_no_cluster_has_are_drawn_too() -> None:
    made = replace(drifting.demo(), clusters=(ClusterDrawn("dac", ("dgx1", "dgx2")),), nodes=(NodeDrawn("x", "off"),))
    drawn = cards(made)
    assert ["dac", "4nodes-switch", "dgx56", "solo-7", "in no cluster"] == [card.name for card in drawn]
    assert ["x"] == [tile.node.name for tile in drawn[-1].tiles]


def test_of_many_clusters_those_with_something_are_open() -> None:
    calm = tuple(ClusterDrawn(f"c{number}", (f"n{number}",)) for number in range(30))
    nodes = tuple(NodeDrawn(f"n{number}", "unreachable" if number == 7 else "reachable") for number in range(30))
    made = replace(drifting.calm(), clusters=(*drifting.calm().clusters, *calm), nodes=(*drifting.calm().nodes, *nodes))
    assert ["c7"] == [card.name for card in cards(made) if card.is_open]


def test_charts_hold_the_last_reports_and_this_one() -> None:
    long = replace(drifting.demo(), history=tuple(drifting.past(number) for number in range(80, 0, -1)))
    found = {chart.name: chart.figures for chart in charts(long)}
    assert {CHARTED} == {len(figures) for figures in found.values()}
    assert (3, 4, 4, 2) == found["config"][-4:]
    assert (0, 1, 1, 1) == found["unreachable nodes"][-4:]


def test_a_lane_and_a_node_lead_to_what_is_found_about_them() -> None:
    drawn = cards(drifting.demo())
    lanes = {lane.status.gang: lane.findings for card in drawn for lane in card.lanes}
    ids = [item.id for item in drifting.FINDINGS]
    assert {ids[1], ids[2], ids[3]} == set(lanes[drifting.QUAD])
    assert (ids[0],) == lanes[drifting.PAIR]
    assert () == lanes[drifting.SMALL]
    tiles = {tile.node.name: tile.findings for card in drawn for tile in card.tiles}
    assert ((ids[6],), (ids[5],), ()) == (tiles["dgx2"], tiles["dgx7"], tiles["dgx6"])


@pytest.mark.parametrize(
    ("counting", "told"),
    [(ANY, "<b>2</b> drift was found"), (fail_on(["outage"]), "<b>0</b> no finding that counts")],
    ids=["all", "outages"],
)
def test_the_page_tells_the_exit_code_that_the_command_has(counting: FailOn, told: str) -> None:
    page = drift_html(replace(drifting.calm(), findings=drifting.FINDINGS[1:3]), counting)
    assert f"<dt>Exit code</dt><dd>{told}</dd>" in page


def test_what_nobody_wants_is_drawn_where_it_is_also_when_its_cluster_is_gone() -> None:
    status = replace(drifting.status(), unwanted=(Unwanted("gone/old", ("dgx7",), 1),))
    drawn = {card.name: card for card in cards(replace(drifting.demo(), status=status))}
    assert ["old"] == [item.lane for item in drawn["gone"].unwanted]
    assert [("old",)] == [tile.unwanted for tile in drawn["gone"].tiles]


def test_clusters_without_a_lane_come_last_and_are_folded_unless_only_they_have_a_node() -> None:
    idle = ClusterDrawn("idle", ("dgx1", "dgx2"))
    drawn = cards(replace(drifting.demo(), clusters=(idle, *drifting.demo().clusters)))
    assert [("idle", False), ("spare", True)] == [(card.name, card.is_open) for card in drawn[-2:]]
    assert [("4nodes-switch", "dac")] * 2 == [tile.taken for tile in drawn[-2].tiles]
