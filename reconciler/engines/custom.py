"""Any engine: the lane's `argv` with placeholders, the same on every rank; rank 0 answers HTTP.

Placeholders are `{rank}`, `{nodes}`, `{head}` (address of rank 0), `{address}` (own address), `{port}` (HTTP of the
head), `{rendezvous_port}`, `{interface}` (own fabric interface), `{node}`, `{model}` (its path), `{served_name}`,
`{ports.NAME}` and `{paths.NAME}`. Other braces stay as they are, so JSON needs no escaping.
"""

import difflib
import re
from collections.abc import Iterator, Mapping

import specs
from reconciler.engines.base import Engine, Fault, Job, Part, Seat, fabric_env
from reconciler.engines.flags import flags

PLACEHOLDER = re.compile(r"\{([a-z_]+(?:\.[A-Za-z0-9._-]+)?)\}")

NAMES = (
    "rank",
    "nodes",
    "head",
    "address",
    "port",
    "rendezvous_port",
    "interface",
    "node",
    "model",
    "served_name",
)


def _faults(lane: specs.Lane, _: specs.Model | None) -> Iterator[Fault]:
    if not lane.argv:
        yield Fault(("engine",), "a custom engine needs `argv`", "It says what to run on each rank.", "set `argv`")
    for index, word in enumerate(lane.argv):
        for name in PLACEHOLDER.findall(word):
            if name == "model" and lane.model is None:
                yield Fault(("argv", index), "{model} is of a lane with a model", hint="set `model` of the lane")
            elif not _is_known(lane, name):
                close = difflib.get_close_matches(name, [*NAMES, *(f"ports.{port}" for port in lane.ports)], 1)
                hint = f"did you mean {{{close[0]}}}?" if close else f"known are {', '.join(NAMES)}, ports.*, paths.*"
                yield Fault(("argv", index), f"unknown placeholder {{{name}}}", hint=hint)


def _is_known(lane: specs.Lane, name: str) -> bool:
    if name.startswith("ports."):
        return name.removeprefix("ports.") in lane.ports
    return name in NAMES or name.startswith("paths.")


def _values(job: Job, seat: Seat) -> Mapping[str, str]:
    return {
        "rank": str(seat.index),
        "nodes": str(len(job.seats)),
        "head": job.head.address,
        "address": seat.address,
        "port": str(job.cluster.port),
        "rendezvous_port": str(job.cluster.rendezvous_port),
        "interface": seat.interface.name if seat.interface else "",
        "node": seat.name,
        "model": job.model_path(seat),
        "served_name": job.served_name,
        **{f"ports.{name}": str(port) for name, port in job.lane.ports.items()},
        **{f"paths.{name}": path for name, path in seat.node.paths.items()},
    }


def _part(job: Job, seat: Seat) -> Part:
    values = _values(job, seat)
    words = tuple(PLACEHOLDER.sub(lambda match: values.get(match[1], match[0]), word) for word in job.lane.argv)
    return Part(
        role="head" if seat.index == 0 else "worker",
        program=(),
        command=(*words, *flags(job.args)),
        ports=_ports(job, seat),
        env=fabric_env(job, seat),
    )


def _ports(job: Job, seat: Seat) -> tuple[int, ...]:
    own = tuple(sorted(job.lane.ports.values()))
    if seat.index != 0:
        return own
    meets = len(job.seats) > 1 and any("{rendezvous_port}" in word for word in job.lane.argv)
    return (job.cluster.port, *((job.cluster.rendezvous_port,) if meets else ()), *own)


def _boot_order(job: Job) -> tuple[tuple[int, ...], ...]:
    return (tuple(seat.index for seat in job.seats),)


ENGINE = Engine("custom", "any program: `argv` with placeholders, the same on each rank", _faults, _part, _boot_order)
