"""Texts with placeholders, filled in for one rank."""

import re
from collections.abc import Mapping

from reconciler.engines.base import Job, Seat

_PLACEHOLDER = re.compile(r"\{([a-z_]+(?:\.[A-Za-z0-9._-]+)?)\}")

NAMES = (
    "rank",
    "nodes",
    "head",
    "address",
    "port",
    "rendezvous_port",
    "interface",
    "hca",
    "node",
    "model",
    "draft",
    "served_name",
    "tensor",
    "pipeline",
    "data",
    "expert",
)
"""The placeholders beside `{ports.NAME}` and `{paths.NAME}`."""


def named(text: str) -> tuple[str, ...]:
    """The placeholders in a text, without their braces, in order."""
    return tuple(_PLACEHOLDER.findall(text))


def filled(text: str, known: Mapping[str, str]) -> str:
    """The text with each known placeholder replaced; what is not known stays as it is."""
    return _PLACEHOLDER.sub(lambda match: known.get(match[1], match[0]), text)


def values(job: Job, seat: Seat) -> Mapping[str, str]:
    """What stands for each placeholder on one rank."""
    parallel, interface = job.lane.parallel, seat.interface
    return {
        "rank": str(seat.index),
        "nodes": str(len(job.seats)),
        "head": job.head.address,
        "address": seat.address,
        "port": str(job.cluster.port),
        "rendezvous_port": str(job.cluster.rendezvous_port),
        "interface": interface.name if interface else "",
        "hca": (interface.hca or "") if interface else "",
        "node": seat.name,
        "model": job.model_path(seat),
        "draft": job.draft_path(seat),
        "served_name": job.served_name,
        "tensor": str(parallel.tensor),
        "pipeline": str(parallel.pipeline),
        "data": str(parallel.data),
        "expert": str(parallel.expert),
        **{f"ports.{name}": str(port) for name, port in job.lane.ports.items()},
        **{f"paths.{name}": path for name, path in seat.node.paths.items()},
    }
