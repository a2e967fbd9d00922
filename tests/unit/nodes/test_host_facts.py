"""The optional facts of a host: what is read from recorded output, and that what is not there is not known."""

from pathlib import Path

import pytest

from reconciler.core.host import ROCE_V2, Clock, Gid, GpuSupport, Host, Interface, Process, RdmaPort
from reconciler.core.observed import Gpu
from reconciler.nodes import host_facts
from reconciler.nodes.facts import HostFacts, parse

SAMPLES = Path(__file__).parents[2] / "fixtures" / "facts"
CONTAINER = "0f1e2d3c4b5a69788796a5b4c3d2e1f0" * 2


def sample(name: str) -> HostFacts:
    found = parse((SAMPLES / name).read_text())
    assert found is not None
    return found


FABRIC = sample("gb10-fabric.txt").host


def test_interfaces_are_up_down_or_not_told_and_a_peer_is_not_an_own_address() -> None:
    expected = (
        Interface("lo", None, ("127.0.0.1", "::1")),
        Interface("enP7s7", True, ("192.168.7.11", "fe80::4ebb:47ff:fe00:1")),
        Interface("enp1s0f0np0", True, ("10.10.0.1", "fe80::4ebb:47ff:fe00:2")),
        Interface("enp1s0f1np1", False),
        Interface("docker0", False, ("172.17.0.1",)),
        Interface("tun0", None, ("10.8.0.6",)),
        Interface("veth3c1", True),
    )
    assert expected == FABRIC.interfaces
    assert expected[2] == FABRIC.with_address("10.10.0.1") == FABRIC.interface("enp1s0f0np0")
    assert FABRIC.interface("eth9") is FABRIC.with_address("10.8.0.5") is None


def test_rdma_ports_have_their_state_and_their_gids_by_index() -> None:
    first, second = FABRIC.rdma or ()
    assert RdmaPort("rocep1s0f1", 1, "DOWN", "Ethernet") == second
    assert ("rocep1s0f0", 1, "ACTIVE", "Ethernet") == (first.device, first.port, first.state, first.link)
    assert [0, 1, 2, 3] == [gid.index for gid in first.gids]
    assert Gid(0, "fe80::4ebb:47ff:fe00:2", "IB/RoCE v1", "enp1s0f0np0") == first.gids[0]
    assert Gid(3, "10.10.0.1", ROCE_V2, "enp1s0f0np0") == first.gids[3]
    assert (first,) == FABRIC.rdma_ports("rocep1s0f0") == FABRIC.rdma_ports("rocep1s0f0:1")
    assert () == FABRIC.rdma_ports("rocep1s0f0:2")


def test_processes_that_hold_memory_are_named_with_their_container() -> None:
    engine = Process(4711, "VLLM::EngineCore", 98304 * 2**20, CONTAINER)
    assert (engine, Process(812, "Xorg", None)) == FABRIC.gpu_processes
    expected = (Process(4711, "VLLM::EngineCor", 101543936 * 1024, CONTAINER), Process(812, "Xorg", 524288 * 1024))
    assert expected == FABRIC.top_processes
    assert (Gpu("NVIDIA GB10", None, "580.95.05", None),) == sample("gb10-fabric.txt").gpus


def test_boots_uptime_and_the_hook() -> None:
    assert (2, 41602.9, True) == (
        FABRIC.boots_in_a_day,
        FABRIC.uptime_s,
        FABRIC.gpu_support and FABRIC.gpu_support.hook,
    )


def test_an_older_sample_tells_nothing_of_all_this() -> None:
    assert Host(gpu_support=GpuSupport(())) == sample("lab-root.txt").host
    assert sample("lab-root.txt").epoch_s is None


@pytest.mark.parametrize(
    ("boots", "uptime", "expected"),
    [
        ([], "100.0 1.0", None),
        (["wtmp begins Sat Aug  1 10:02:11 2026"], "100.0 1.0", None),
        (["wtmp begins Sat Aug  1 10:02:11 2026"], "100000.0 1.0", 0),
        (["reboot   system boot  6.1", "wtmp.db begins Sat Aug  1"], "100.0 1.0", 1),
    ],
    ids=["no record", "a record without the last boot", "up for long", "one boot"],
)
def test_boots_are_counted_where_a_record_is_kept(boots: list[str], uptime: str, expected: int | None) -> None:
    assert expected == host_facts.host({"boots": boots, "uptime": [uptime]}, {}).boots_in_a_day


@pytest.mark.parametrize(
    ("printed", "expected"), [("100.250013000", 100.250013), ("100.%N", 100.5), ("100", 100.5), ("", None), ("x", None)]
)
def test_the_clock_is_read_whatever_date_can_do(printed: str, expected: float | None) -> None:
    assert expected == host_facts.epoch_s([printed] if printed else [])


def test_an_offset_is_known_to_half_the_round_trip() -> None:
    found = host_facts.clock(110.0, 100.0, 104.0)
    assert Clock(8.0, 2.0) == found
    assert 6.0 == found.surely_off_s
    assert 0.0 == Clock(-1.5, 2.0).surely_off_s
    assert host_facts.clock(None, 100.0, 104.0) is None
    assert host_facts.clock(110.0, 104.0, 100.0) is None, "the controller's own clock was set meanwhile"


def test_docker_tells_of_runtimes_and_of_cdi_devices() -> None:
    info = {
        "Runtimes": {"runc": {}, "nvidia": {}},
        "DefaultRuntime": "runc",
        "CDISpecDirs": ["/etc/cdi", "/var/run/cdi"],
        "DiscoveredDevices": [{"Source": "cdi", "ID": "nvidia.com/gpu=0"}],
    }
    expected = GpuSupport(("nvidia", "runc"), "runc", ("/etc/cdi", "/var/run/cdi"), ("nvidia.com/gpu=0",), hook=True)
    assert expected == host_facts.gpu_support(info, FABRIC)
    assert GpuSupport(()) == host_facts.gpu_support({}, Host())
