"""`fleet doctor` on real nodes: what is wrong is found by name, refused by the plan, and gone when it is mended."""

from pathlib import Path
from typing import Any

import pytest

from . import Lab
from .fleet_cli import desk, names
from .shell import wait_until

pytestmark = pytest.mark.lab

SOLO, PAIR = ("solo", "single-3"), ("pair", "pair-a")


def test_wires_and_ports_that_are_not_as_the_spec_says(clean_lab: Lab, tmp_path: Path) -> None:
    made = desk(clean_lab, tmp_path, PAIR, SOLO)
    assert 0 == made.fleet("doctor").rc
    node = clean_lab.nodes["node1"]
    node.exec(["ip", "link", "add", "f1", "type", "veth", "peer", "name", "f1peer"])
    try:
        _wire(made, "node1", name="f1", address=node.address)
        down = made.fleet("doctor", "node1", "pair")
        assert 3 == down.rc
        assert "f1 of node1 is down" in down.out
        node.exec(["ip", "link", "set", "f1", "up"])
        node.exec(["ip", "link", "set", "f1peer", "up"])
        wrong = made.fleet("doctor", "pair")
        assert (3, True) == (wrong.rc, f"{node.address} is on eth0" in wrong.out)
        assert "refused" in made.fleet("plan").out
    finally:
        node.exec(["ip", "link", "delete", "f1"])
    _wire(made, "node1", name="eth0", address=node.address)
    assert 0 == made.fleet("doctor").rc


def test_a_worker_without_its_head_is_found_and_mended(clean_lab: Lab, tmp_path: Path) -> None:
    made = desk(clean_lab, tmp_path, PAIR)
    made.apply()
    (head,) = names(clean_lab)["node1"]
    clean_lab.nodes["node1"].docker("kill", head)
    wait_until("the head to end", lambda: "without its head (rank 0)" in made.fleet("doctor", "node2").out, seconds=20)
    made.apply()
    assert "without its head" not in made.fleet("doctor").out


def _wire(made: Any, node: str, **interface: str) -> None:
    def change(content: dict[str, Any]) -> None:
        content["nodes"][node]["interfaces"]["f0"] = interface

    made.edit("inventory.yaml", change)
