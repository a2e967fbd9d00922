"""A real vLLM over two nodes of different Docker generations: booted, proved, broken, repaired, replaced, gone back to.

One test, since each boot takes a minute: what one part leaves is what the next begins with.
"""

import json
import time
import urllib.request

import pytest

from tests.lab import Lab, serving
from tests.lab.fleet_cli import Desk, Ran
from tests.lab.node import Node
from tests.lab.registry import direct
from tests.lab.shell import wait_until

from .environment import VERSION
from .lanes import CLUSTER, LANE, SERVED_NAME, to_llamacpp

pytestmark = [pytest.mark.vllm, pytest.mark.timeout(1500)]

PLACEMENT = f"{CLUSTER}/{LANE}"
BOOT_S = 600


def test_the_story_of_a_lane(desk: Desk) -> None:
    desk.edit("fleet.yaml", lambda content: content.update(retain=1))
    desk.place((LANE, CLUSTER))
    url = boots_and_is_proved(desk)
    refuses_a_flag_before_anything_stops(desk, url)
    notices_a_dead_worker(desk)
    repairs_the_gang(desk, url)
    is_replaced(desk, url)
    is_gone_back_to(desk, url)


def boots_and_is_proved(desk: Desk) -> str:
    """Two ranks with the flags of the engine's module; its phases are followed; the right answer is the proof."""
    assert followed(desk) & {"weights", "load", "api"}
    lane = status(desk)
    assert ("in-sync", "healthy") == (lane["sync"], lane["health"])
    url = str(lane["url"]).removesuffix("/v1")
    assert "Paris" in serving.ask(url)
    assert [SERVED_NAME] == serving.served_models(url)
    assert VERSION == vllm_version(url)
    return url


def followed(desk: Desk) -> set[str]:
    """Apply; the phases that `fleet status` tells of meanwhile, in logs of a real boot."""
    phases = set()
    with desk.started("apply", "--yes") as applying:
        while applying.poll() is None:
            [lane] = json.loads(desk.fleet("status", "--json").out)["lanes"]
            phases.add(str(lane["phase"]))
            time.sleep(1)
        said = "".join(applying.communicate())
        assert 0 == applying.returncode, said
        assert "trying out" in said
    return phases


def refuses_a_flag_before_anything_stops(desk: Desk, url: str) -> None:
    """vLLM's own parser, asked in a container beside the lane that serves, which goes on serving."""
    before = started(desk.lab)
    desk.edit("lanes.yaml", lambda content: content["lanes"][LANE]["args"].update({"no-such-flag": 1}))
    refused = desk.fleet("apply", "--yes", timeout=BOOT_S)
    desk.edit("lanes.yaml", lambda content: content["lanes"][LANE]["args"].pop("no-such-flag"))
    assert 0 != refused.rc
    assert "unrecognized arguments: --no-such-flag" in refused.said
    assert "failed before anything was stopped" in refused.said
    assert before == started(desk.lab)
    assert "Paris" in serving.ask(url)


def notices_a_dead_worker(desk: Desk) -> None:
    """The process that computes on rank 1 dies, and with it the rank; the head's pages say nothing of it."""
    worker = desk.lab.nodes["node3"]
    worker.exec(["kill", "-KILL", worker_process(worker)])
    wait_until("rank 1 to end", lambda: not worker.docker("ps", "-q"), seconds=60)
    lane = status(desk, rc=None)
    assert "degraded" == lane["health"]
    assert "rank 1 on node3 exited" in str(lane["detail"])


def repairs_the_gang(desk: Desk, url: str) -> None:
    told = apply(desk).said
    assert "repair" in told
    assert "healthy" == status(desk)["health"]
    assert "Paris" in serving.ask(url)


def is_replaced(desk: Desk, url: str) -> None:
    desk.edit("lanes.yaml", to_llamacpp)
    apply(desk)
    assert vllm_version(url) is None
    assert "Paris" in serving.ask(url)


def is_gone_back_to(desk: Desk, url: str) -> None:
    back = desk.fleet("rollback", PLACEMENT, "--yes", "--reason", "slow", timeout=BOOT_S)
    assert 0 == back.rc, back.said
    assert VERSION == vllm_version(url)
    assert "Paris" in serving.ask(url)


def apply(desk: Desk) -> Ran:
    ran = desk.fleet("apply", "--yes", timeout=BOOT_S)
    assert 0 == ran.rc, ran.said
    return ran


def status(desk: Desk, rc: int | None = 0) -> dict[str, object]:
    """What `fleet status` says of the lane."""
    ran = desk.fleet("status", "--json")
    assert rc in (None, ran.rc), ran.said
    [lane] = json.loads(ran.out)["lanes"]
    return dict(lane)


def started(lab: Lab) -> list[str]:
    """The containers that run, each with the moment it started: none is another after an effect."""
    ids = [(node, name) for node in lab.nodes.values() for name in node.docker("ps", "-q").split()]
    return [node.docker("inspect", "-f", "{{.Id}} {{.State.StartedAt}}", name) for node, name in ids]


def worker_process(node: Node) -> str:
    """The process that holds the weights, by the title vLLM gives it."""
    [found] = node.exec(["pgrep", "-f", "^VLLM::Worker"]).stdout.split()
    return found


def vllm_version(url: str) -> str | None:
    """The version of the vLLM that answers there; None where another engine does."""
    if serving.status(f"{url}/version") != 200:
        return None
    with direct().open(urllib.request.Request(f"{url}/version"), timeout=10) as answer:
        return str(json.load(answer)["version"])
