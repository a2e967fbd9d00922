"""What simulated ranks of vLLM and SGLang do, as their command lines say."""

import asyncio

import pytest

from reconciler.core.desired import ContainerSpec
from reconciler.core.host import Interface
from reconciler.testing import Exits, SimImage, SimNodeConfig, SimulatedFleet, engine_behaviour, run_simulated
from reconciler.testing.torch import BOOT_S, Head, Headless

IMAGE = SimImage.named("ghcr.io/acme/vllm", engine_behaviour)
SERVE = "toolchain.py serve /m --served-model-name mimo"
MEET = "--nnodes 2 --master-addr 10.9.0.1 --master-port 29501"
HEAD = f"{SERVE} --port 30000 {MEET} --node-rank 0"
WORKER = f"{SERVE} {MEET} --node-rank 1 --headless"
SGLANG = "--served-model-name mimo --port 30000 --dist-init-addr [10.9.0.1]:29501 --nnodes 2 --node-rank"


def spec(line: str) -> ContainerSpec:
    return ContainerSpec(IMAGE.pin, tuple(line.split()))


def test_ranks_are_read_from_their_command_lines() -> None:
    head = engine_behaviour(spec(HEAD))
    assert isinstance(head, Head)
    assert ("mimo", {30000, 29501}, ()) == (head.model, {port for _, port in head.ports}, head.peers)
    worker = engine_behaviour(spec(WORKER))
    assert isinstance(worker, Headless)
    assert (None, (), (("10.9.0.1", 29501),)) == (worker.model, worker.ports, worker.peers)
    other = engine_behaviour(spec(f"sglang {SGLANG} 1"))
    assert isinstance(other, Head)
    assert (("0.0.0.0", 30000),) == other.ports
    assert (("10.9.0.1", 29501),) == other.peers
    assert isinstance(engine_behaviour(spec(f"python3 -c parse {HEAD}")), Exits)
    assert engine_behaviour(spec("llama-server --alias tiny")).model == "tiny"


def two_nodes() -> SimulatedFleet:
    wires = [(Interface("f0", True, (f"10.9.0.{number}",)),) for number in (1, 2)]
    names = zip(("n1", "n2"), ("one.lan", "two.lan"), wires, strict=True)
    return SimulatedFleet(
        [SimNodeConfig(*item[:2], images=(IMAGE.digest,), interfaces=item[2]) for item in names], [IMAGE]
    )


@pytest.mark.parametrize("head_first", [True, False])
def test_ranks_meet_over_the_fabric_and_a_worker_alone_ends(head_first: bool) -> None:
    fleet = two_nodes()

    async def scene() -> int:
        for name, line in (("n1", HEAD), ("n2", WORKER))[0 if head_first else 1 :]:
            node = fleet.node(name)
            image = node.facts().images[0].id
            node.start_container(node.create("rank", spec(line), image, {}, {}))
        await asyncio.sleep(BOOT_S + 1)
        state = fleet.node("n2").container("rank")
        assert state is not None
        if not head_first:
            assert (False, 1) == (state.is_running, state.exit_code)
            return 0
        assert state.is_running
        session = await fleet.connect("n2", 5)
        return (await session.engines.http("10.9.0.1", 30000, "GET", "/health", None, 5)).status

    assert (200 if head_first else 0) == run_simulated(scene())
