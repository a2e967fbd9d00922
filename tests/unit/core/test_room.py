"""When memory counts as free for a rank, and who is named when it does not."""

from dataclasses import replace

import pytest

from reconciler.core.desired import RankSpec
from reconciler.core.host import Host, Process
from reconciler.core.observed import Gpu, NodeFacts
from reconciler.core.room import holders, needs_room, shortage
from tests.unit.core import build

GIB = build.GIB
LIVE = build.container(build.gang(), 0)


def rank(memory_gib: int | None = None, gpus: int = 0) -> RankSpec:
    memory = None if memory_gib is None else memory_gib * GIB
    return build.rank(container=replace(build.spec("serve"), gpus=gpus), memory_bytes=memory)


def facts(free_gib: int | None = 100, used_gib: int | None = 1, *processes: Process) -> NodeFacts:
    """A node with one GPU of 80 GiB."""
    used = None if used_gib is None else used_gib * GIB
    gpu = Gpu("NVIDIA H100", 80 * GIB, "580", used)
    known = build.facts("n1", LIVE, gpus=(gpu,), memory_available_bytes=None if free_gib is None else free_gib * GIB)
    return replace(known, host=Host(gpu_processes=processes, top_processes=()))


OURS = Process(7, "VLLM::Worker", 60 * GIB, LIVE.id)
LEFT = Process(8, "VLLM::EngineCor", 60 * GIB)

LACKS = {
    "enough of all": (rank(100, 1), facts(), ""),
    "too little of the machine": (rank(101), facts(), "100.0 GiB of 101.0 GiB free"),
    "unknown memory": (rank(101), facts(None), ""),
    "a process of a stopped lane": (rank(None, 1), facts(100, 61, LEFT), "61.0 GiB of 80.0 GiB of GPU 0 in use"),
    "a lane that shares the GPU": (rank(None, 1), facts(100, 61, OURS), ""),
    "no GPU asked for": (rank(None, 0), facts(100, 61, LEFT), ""),
    "all GPUs asked for": (rank(None, -1), facts(100, 61, LEFT), "61.0 GiB of 80.0 GiB of GPU 0 in use"),
    "a GPU that does not tell": (rank(None, 1), facts(100, None, LEFT), ""),
    "a desktop on the GPU": (rank(None, 1), facts(100, 8), ""),
    "more than a desktop": (rank(None, 1), facts(100, 9), "9.0 GiB of 80.0 GiB of GPU 0 in use"),
}


@pytest.mark.parametrize("name", LACKS)
def test_what_is_not_free_is_told(name: str) -> None:
    wanted, seen, told = LACKS[name]
    assert told == shortage(wanted, seen)


def test_a_rank_that_neither_declares_memory_nor_asks_for_gpus_waits_for_nothing() -> None:
    assert [False, True, True, True] == [needs_room(rank(*how)) for how in ((), (1,), (None, 1), (None, -1))]


def test_the_largest_holders_are_named_by_their_containers() -> None:
    seen = facts(1, 61, replace(OURS, memory_bytes=GIB), LEFT, Process(9, "no size", None))
    told = f"VLLM::EngineCor (process 8): 60.0 GiB of the GPU, VLLM::Worker in {LIVE.name}: 1.0 GiB of the GPU"
    assert told == holders(seen)


def test_no_more_than_five_are_named() -> None:
    many = tuple(Process(number, f"p{number}", number * GIB) for number in range(1, 20))
    assert ["p19", "p18", "p17", "p16", "p15"] == [word.split()[0] for word in holders(facts(1, 1, *many)).split(", ")]


def test_nobody_is_named_where_nothing_is_known() -> None:
    assert "" == holders(replace(facts(), host=Host()))
