"""Whether the memory of a node is really free for a rank, and who holds it. Pure.

A process that was ended holds its memory for some seconds more, a GPU's longest. An engine that starts into that fails
minutes later, for a reason that is gone by then.
"""

from collections.abc import Iterator

from reconciler.core.desired import RankSpec
from reconciler.core.figures import size
from reconciler.core.host import Process
from reconciler.core.observed import Gpu, NodeFacts

GPU_LEFT = 0.10
"""Share of a GPU's memory that may be in use: vLLM takes nine tenths unless told otherwise (gpu_memory_utilization)."""

TOLD = 5
"""Holders that are named; the rest hold less."""


def needs_room(rank: RankSpec) -> bool:
    """Whether its start has to wait for memory: it declares some, or asks for GPUs."""
    return rank.memory_bytes is not None or rank.container.gpus != 0


def shortage(rank: RankSpec, facts: NodeFacts) -> str:
    """What is not free yet, for people; empty when all is, or when nothing is known."""
    return "; ".join((*_of_the_machine(rank, facts), *_of_the_gpus(rank, facts)))


def _of_the_machine(rank: RankSpec, facts: NodeFacts) -> Iterator[str]:
    need, free = rank.memory_bytes or 0, facts.memory_available_bytes
    if free is not None and free < need:
        yield f"{size(free)} of {size(need)} free"


def _of_the_gpus(rank: RankSpec, facts: NodeFacts) -> Iterator[str]:
    """A GPU that other containers of the plan share counts without what they hold."""
    if not rank.container.gpus:
        return
    shared = _bytes_of(item for item in facts.host.gpu_processes or () if _lives(item, facts))
    for number, gpu in enumerate(facts.gpus):
        if _is_held(gpu, shared):
            yield f"{size(gpu.used_bytes or 0)} of {size(gpu.memory_bytes or 0)} of GPU {number} in use"


def _is_held(gpu: Gpu, shared_bytes: int) -> bool:
    """None of a GPU that shares the machine's memory: it does not tell, and `_of_the_machine` covers it."""
    if gpu.memory_bytes is None or gpu.used_bytes is None:
        return False
    return gpu.used_bytes - shared_bytes > gpu.memory_bytes * GPU_LEFT


def _lives(process: Process, facts: NodeFacts) -> bool:
    return any(item.id == process.container_id and item.is_running for item in facts.containers)


def _bytes_of(processes: Iterator[Process]) -> int:
    return sum(item.memory_bytes or 0 for item in processes)


def holders(facts: NodeFacts) -> str:
    """Who holds memory, the largest first: "llama-server in fleet-a-r0-v1 (61.2 GiB of the GPU)"; empty if unknown."""
    on_gpu = [(item, " of the GPU") for item in facts.host.gpu_processes or ()]
    on_host = [(item, "") for item in facts.host.top_processes or ()]
    told = [(item, where) for item, where in (*on_gpu, *on_host) if item.memory_bytes]
    told.sort(key=lambda pair: -(pair[0].memory_bytes or 0))
    return ", ".join(_told(item, where, facts) for item, where in told[:TOLD])


def _told(process: Process, where: str, facts: NodeFacts) -> str:
    names = [item.name for item in facts.containers if item.id == process.container_id]
    home = f" in {names[0]}" if names else f" (process {process.pid})"
    return f"{process.name}{home}: {size(process.memory_bytes or 0)}{where}"
