"""`fleet doctor` on the simulated fleet: what it says, how it ends, and that the plan refuses the same."""

from dataclasses import replace
from pathlib import Path

import pytest

from reconciler.core.host import Clock, Interface
from tests.lifecycle.commanding import Commands
from tests.lifecycle.harness import Story


@pytest.fixture
def story(tmp_path: Path) -> Story:
    return Story(tmp_path)


@pytest.fixture
def fleet(story: Story, capsys: pytest.CaptureFixture[str]) -> Commands:
    return Commands(story, capsys)


def unplug(story: Story, node: str) -> None:
    found = story.nodes.node(node)
    down = tuple(replace(item, is_up=False) for item in found.host.interfaces or ())
    found.host = replace(found.host, interfaces=down)


def test_a_fleet_in_good_order_has_nothing_that_fails(fleet: Commands, story: Story) -> None:
    for _ in range(2):  # before and after it runs
        said = fleet("doctor", "--json")
        assert (0, "fleet.doctor/1") == (said.code, said.json["schema"])
        assert {"ok", "warn"} >= {item["result"] for item in said.json["findings"]}
        story.apply()
    assert 0 == fleet("plan", "--detailed-exitcode").code


def test_a_cable_that_is_out_is_refused_by_plan_and_doctor_and_can_be_let_pass(fleet: Commands, story: Story) -> None:
    unplug(story, "node2")
    said = fleet("doctor")
    assert 3 == said.code
    assert "interface        eth0 of node2 is down" in said.out
    whole = fleet("doctor", "--all").out
    assert whole.index("\npair-a/pair\n") < whole.index("\nsingle-3/solo\n") < whole.index("\nnode1\n")
    assert "refused" in fleet("plan").out
    assert 3 == fleet("apply", "--yes").code
    path = story.folder / "fleet.yaml"
    silence = "checks: {silence: [{check: interface, address: node2, reason: no switch yet, until: 2999-12-31}]}\n"
    path.write_text(path.read_text() + silence)
    said = fleet("doctor")
    assert 0 == said.code
    assert "silenced until 2999-12-31: pair-a/pair: eth0 of node2 is down (interface; no switch yet)" in said.out
    assert "silenced until 2999-12-31: eth0 of node2 is down" in fleet("plan").out
    assert 0 == fleet("apply", "--yes").code


def test_a_refused_lane_that_is_held_does_not_keep_the_others_from_going_on(fleet: Commands, story: Story) -> None:
    unplug(story, "node2")
    fleet("hold", "pair", "--reason", "the cable is ordered")
    said = fleet("plan")
    assert "refused, and withheld: others go on" in said.out
    assert "Run `fleet apply`" in said.out
    done = fleet("apply", "--yes")
    assert (3, {"solo": 1}) == (done.code, story.running_lanes())
    assert "the cable is ordered" in done.out


def test_names_and_checks_restrict_it(fleet: Commands, story: Story) -> None:
    unplug(story, "node2")
    assert 0 == fleet("doctor", "solo").code
    assert 3 == fleet("doctor", "pair").code
    assert 3 == fleet("doctor", "pair-a").code
    assert (0, 3) == (fleet("doctor", "single-3/solo").code, fleet("doctor", "pair-a/pair").code)
    assert 3 == fleet("doctor", "node2").code
    only = fleet("doctor", "node3", "--check", "clock", "--json")
    assert [("clock", "node3")] == [(item["check"], item["address"]) for item in only.json["findings"]]
    assert "did you mean 'pair'?" in fleet("doctor", "piar").err
    assert "did you mean 'clock'?" in fleet("doctor", "--check", "clok").err


def test_a_lane_that_is_placed_nowhere_is_told_so(fleet: Commands, story: Story) -> None:
    path = story.folder / "fleet.yaml"
    path.write_text(path.read_text().replace("- lane: solo\n  cluster: single-3\n", ""))
    assert "the lane solo is placed nowhere" in fleet("doctor", "solo").err


def test_a_node_that_does_not_answer_is_unknown_and_nothing_is_concluded(fleet: Commands, story: Story) -> None:
    story.nodes.node("node2").power_off()
    said = fleet("doctor")
    assert 4 == said.code
    assert "node2 cannot be read" in said.out
    assert "pair-a/pair" not in said.out


def test_warnings_do_no_more_than_warn(fleet: Commands, story: Story) -> None:
    node = story.nodes.node("node1")
    node.host = replace(node.host, clock=Clock(7.0, 0.1), boots_in_a_day=4)
    said = fleet("doctor", "node1")
    assert 0 == said.code
    assert "the clock of node1 is 7 s ahead of this machine's" in said.out
    assert "node1 started 4 times within a day" in said.out
    assert "warning: the clock of node1 is 7 s ahead of this machine's (clock)" in fleet("plan").out
    assert 0 == fleet("apply", "--yes").code


def test_an_orphan_is_found_and_the_next_apply_mends_it(fleet: Commands, story: Story) -> None:
    story.apply()
    head = next(item for item in story.nodes.node("node1").runtime.containers.values())
    story.nodes.node("node1").kill(head.id)
    assert "without its head (rank 0) of pair-a/pair" in fleet("doctor", "node2").out
    assert 0 == fleet("apply", "--yes").code
    assert "without its head" not in fleet("doctor").out


def test_the_list_explains_every_check_and_needs_no_spec(fleet: Commands) -> None:
    said = fleet("doctor", "--list")
    assert 0 == said.code
    assert "interface (lane): Is the cluster's interface there, up, with the declared address?" in said.out
    assert {"id", "title", "mend", "guards"} == set(fleet("doctor", "--list", "--json").json[0])


def test_another_interface_with_the_address_is_named(fleet: Commands, story: Story) -> None:
    node = story.nodes.node("node2")
    node.host = replace(node.host, interfaces=(Interface("enp1s0", True, (node.config.address,)),))
    said = fleet("doctor", "pair")
    assert f"node2 has no interface eth0; {node.config.address} is on enp1s0" in said.out
    assert "write `name: enp1s0`" in said.out


def test_every_name_that_is_unknown_is_told(fleet: Commands) -> None:
    said = fleet("doctor", "nodex", "node1", "elsewhere")
    assert 1 == said.code
    assert "no node, cluster, lane or placement named 'nodex'; did you mean 'node" in said.err
    assert "; no node, cluster, lane or placement named 'elsewhere'; known: " in said.err


def test_a_status_can_be_of_a_part(fleet: Commands, story: Story) -> None:
    story.apply()
    fleet("hold", "pair", "--reason", "a demo")
    assert ["single-3/solo"] == [lane["gang"] for lane in fleet("status", "solo", "--json").json["lanes"]]
    assert [] == fleet("status", "node3", "--json").json["holds"]
    assert ["pair"] == [item["name"] for item in fleet("status", "pair-a", "--json").json["holds"]]
    assert 1 == fleet("status", "sol").code
