"""What engines on PyTorch and NCCL need of a container, where the lane does not say it.

After vLLM's and SGLang's notes on Docker: the processes of a node share memory, for which Docker's 64 MB are too small
(`--shm-size`); RDMA needs its devices, and memory that may be locked without a limit.
"""

from dataclasses import replace

from reconciler.engines.base import Job, Part, Seat

SHM_BYTES = 16 * 2**30
"""Size of /dev/shm: a ceiling; pages that are not written cost nothing."""

RDMA_DEVICE = "/dev/infiniband"


WORKER_GRACE_S = 10.0
"""A worker keeps nothing, and without its head it may wait for others for long: more time only prolongs the outage."""


def furnished(job: Job, seat: Seat, part: Part) -> Part:
    """The part with shared memory, and with RDMA where several ranks meet over an interface that has an `hca`."""
    if seat.index > 0:
        part = replace(part, stop_grace_s=min(WORKER_GRACE_S, job.lane.stop_grace))
    if job.is_spread and seat.interface is not None and seat.interface.hca is not None:
        return replace(part, shm_bytes=SHM_BYTES, devices=(RDMA_DEVICE,), ulimits=(("memlock", -1),))
    return replace(part, shm_bytes=SHM_BYTES)
