"""A real container tries out a lane's command line before anything stops for it."""

import json

import pytest

from . import Lab
from .fleet_cli import Desk, desk, names

pytestmark = pytest.mark.lab

PAIR, SOLO = ("pair", "pair-a"), ("solo", "single-3")


def left(lab: Lab) -> list[str]:
    """Containers of preflights, in any state, with their node."""
    found = {name: node.docker("ps", "-a", "--format", "{{.Names}}").split() for name, node in lab.nodes.items()}
    return [f"{node}/{name}" for node, items in found.items() for name in items if name.endswith(".preflight")]


@pytest.fixture
def served(clean_lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Desk:
    """A lane serves on two nodes, one of each kind of image store."""
    clean_lab.preload("llamacpp", ["node1", "node2"])
    made = desk(clean_lab, tmp_path_factory.mktemp("served"), PAIR)
    made.apply()
    return made


def test_what_the_image_refuses_costs_the_lane_nothing(served: Desk) -> None:
    before = names(served.lab)
    served.edit_lane(
        "pair", preflight={"command": ["sh", "-c", "echo no such flag: --warp >&2; exit 3"]}, stop_grace="6s"
    )
    served.edit_lane("pair", args={"ctx-size": 256})
    ran = served.fleet("apply", "--yes")
    assert 6 == ran.rc, ran.said
    assert "no such flag: --warp" in ran.said
    assert "the fleet serves what it served before" in ran.said
    assert before == names(served.lab)
    assert [] == left(served.lab)


def test_what_it_accepts_is_booted_and_its_duration_is_recorded(served: Desk) -> None:
    served.edit_lane("pair", preflight={"command": ["sh", "-c", 'test -z "$NOTHING"']}, args={"ctx-size": 256})
    ran = served.fleet("apply", "--yes")
    assert 0 == ran.rc, ran.said
    assert [] == left(served.lab)
    known = json.loads(served.fleet("history", "--durations", "--json").out)
    assert {"boot", "preflight", "stop"} <= {item["kind"] for item in known}


def test_one_that_does_not_end_is_stopped_at_its_deadline(served: Desk) -> None:
    served.edit_lane("pair", preflight={"command": ["sleep", "600"], "deadline": "3s"}, args={"ctx-size": 256})
    ran = served.fleet("apply", "--yes")
    assert 6 == ran.rc, ran.said
    assert "did not end within 3 s" in ran.said
    assert [] == left(served.lab)


def test_a_command_that_is_not_in_the_image_is_a_refusal(served: Desk) -> None:
    served.edit_lane("pair", preflight={"command": ["/no/such/program"]}, args={"ctx-size": 256})
    ran = served.fleet("apply", "--yes")
    assert 6 == ran.rc, ran.said
    assert "/no/such/program" in ran.said
    assert [] == left(served.lab)
