"""Whether a node is the machine that a rank needs: memory, GPUs and their driver and runtime, files."""

from collections.abc import Iterator

from reconciler.core.checks.case import Case
from reconciler.core.checks.finding import Finding
from reconciler.core.classify import RankView
from reconciler.core.figures import size
from reconciler.core.host import GpuSupport, Process


def memory(case: Case, rank: RankView) -> Iterator[Finding]:
    """All there is, whoever has it now."""
    need, total = rank.rank.memory_bytes, rank.facts.memory_total_bytes
    if need is not None and total is not None and need > total:
        yield case.refuse(
            "memory",
            rank,
            f"the lane needs {need / 2**30:.1f} GiB a rank; {rank.rank.node} has {total / 2**30:.1f} GiB in all",
            "place the lane on other nodes, or correct `memory` of the lane",
        )


def gpus(case: Case, rank: RankView) -> Iterator[Finding]:
    """As `nvidia-smi` lists them."""
    need, there = rank.rank.container.gpus, len(rank.facts.gpus)
    if need > there:
        yield case.refuse(
            "gpus",
            rank,
            f"the lane needs {need} GPU{'s' * (need > 1)} a rank; {rank.rank.node} shows {there or 'none'}",
            "`nvidia-smi` there has to list them; a lane or node without GPUs says `gpus: 0`",
        )


def paths(case: Case, rank: RankView) -> Iterator[Finding]:
    """Looked for on nodes whose rank does not run."""
    told = {want.place.path for want in rank.rank.models}
    for path in rank.rank.paths:
        if path not in told and path in rank.facts.missing_paths:
            yield case.refuse(
                "path",
                rank,
                f"{path} is not there on {rank.rank.node}, or is a link that leads nowhere",
                "bring it there, or correct `path` of the model or `mounts` of the lane",
            )


def memory_free(case: Case, rank: RankView) -> Iterator[Finding]:
    """What this fleet runs there goes or stays by the plan, and the boot waits for its memory; of others none knows."""
    need, free = rank.rank.memory_bytes, rank.facts.memory_available_bytes
    own = [item for item in rank.facts.containers if item.is_running and item.owner is not None]
    if need is None or free is None or own or need <= free:
        return
    held = "; ".join(_holding(item) for item in (rank.facts.host.top_processes or ())[:3])
    most = f"; most of it is taken by {held}" if held else ""
    yield case.warn(
        "memory-free",
        rank,
        f"the lane needs {size(need)} a rank; {rank.rank.node} has {size(free)} free{most}",
        "the boot waits until it is free, and then gives up: end what holds it",
    )


def _holding(process: Process) -> str:
    return f"{process.name} (process {process.pid}, {size(process.memory_bytes or 0)})"


def driver(case: Case, rank: RankView) -> Iterator[Finding]:
    """Ranks of one gang talk to each other through the libraries of the driver."""
    head = case.view.ranks[0]
    here, there = _drivers(rank), _drivers(head)
    if not rank.rank.container.gpus:
        return
    if not here or not there:
        yield case.unknown("driver", rank, "the version of the GPU driver is not told")
    elif here != there:
        yield case.warn(
            "driver",
            rank,
            f"{rank.rank.node} has driver {', '.join(here)}, and {head.rank.node} {', '.join(there)}",
            "install the same driver on all nodes of the cluster",
        )


def _drivers(rank: RankView) -> list[str]:
    return sorted({gpu.driver for gpu in rank.facts.gpus if gpu.driver})


def gpu_runtime(case: Case, rank: RankView) -> Iterator[Finding]:
    """Docker gives GPUs by NVIDIA's hook or runtime, or by CDI."""
    support = rank.facts.host.gpu_support
    if not rank.rank.container.gpus:
        return
    if support is None or not support.runtimes:
        yield case.unknown("gpu-runtime", rank, "what Docker can do with GPUs is not told")
    elif not _gives_gpus(support):
        known = ", ".join(support.runtimes)
        yield case.refuse(
            "gpu-runtime",
            rank,
            f"Docker on {rank.rank.node} has no way to give a container a GPU (runtimes: {known})",
            "install nvidia-container-toolkit there, `nvidia-ctk runtime configure`, and restart Docker",
        )


def _gives_gpus(support: GpuSupport) -> bool:
    by_cdi = any(device.startswith("nvidia.com/gpu") for device in support.cdi_devices or ())
    return support.hook or by_cdi or any(name.startswith("nvidia") for name in support.runtimes)
