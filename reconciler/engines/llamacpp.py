"""llama.cpp: `llama-server` on the head, `ggml-rpc-server` on every other rank.

After the server's and the RPC example's documentation (tools/server/README.md, tools/rpc/README.md): workers listen,
the head connects to all of them while it loads, so workers boot first. A head that loses a worker ends itself.
"""

from collections.abc import Iterator

import specs
from reconciler.core.desired import Ready
from reconciler.engines.arguments import ArgumentRules, argument_faults
from reconciler.engines.base import Engine, Fault, Job, Part, Phase, Seat
from reconciler.engines.drafts import args_of
from reconciler.engines.flags import flags

RPC_PORT = 50052
"""The RPC server's own default port; `ports: {rpc: ...}` of the lane sets another."""

WORKER_GRACE_S = 1.0
"""A worker keeps nothing, and as PID 1 it ignores SIGTERM: waiting for it only makes the outage longer."""

RULES = ArgumentRules(
    owned={
        "model": "`model` of the lane",
        "m": "`model` of the lane",
        "alias": "`served_name` of the lane",
        "a": "`served_name` of the lane",
    },
)

PHASES = (
    Phase("weights", r"load_model: loading model|llama_model_loader: loaded meta data"),
    Phase("load", r"load_tensors: "),
    Phase("compile", r"constructing llama_context|llama_kv_cache"),
    Phase("capture", r"warming up the model"),
    Phase("api", r"server is listening on"),
)
"""From the server's log. It compiles nothing: what comes before the warm-up is the context with its cache."""

FATAL = (
    r"error loading model",
    r"failed to load model",
    r"failed to create context",
    r"exiting due to (model loading|HTTP server) error",
    r"error: invalid argument: ",
    r"error while handling argument ",
    r"couldn't bind HTTP server socket",
    r"Remote RPC server crashed",
)
"""After these the server ends, or will never answer."""


def _rpc_port(lane: specs.Lane) -> int:
    return lane.ports.get("rpc", RPC_PORT)


def _faults(lane: specs.Lane, model: specs.Model | None) -> Iterator[Fault]:
    if lane.model is None:
        yield Fault(("engine",), "llamacpp needs a model", "The server loads one GGUF file.", "set `model` of the lane")
    yield from argument_faults(lane, model, RULES)
    for name in lane.ports:
        if name != "rpc":
            yield Fault(("ports", name), f"llamacpp has no port named '{name}'", hint="it has `rpc`")


def _part(job: Job, seat: Seat) -> Part:
    return _head(job, seat) if seat.index == 0 else _worker(job, seat)


def _worker(job: Job, seat: Seat) -> Part:
    port = _rpc_port(job.lane)
    command = ("-H", seat.address, "-p", str(port))
    return Part("rpc", ("ggml-rpc-server",), command, (port,), Ready(port), stop_grace_s=WORKER_GRACE_S)


def _head(job: Job, seat: Seat) -> Part:
    command = (
        "--model",
        job.model_path(seat),
        "--alias",
        job.served_name,
        "--host",
        "0.0.0.0",  # noqa: S104 - lanes serve the network of their node
        "--port",
        str(job.cluster.port),
        *_rpc(job),
        *flags(args_of(job, seat)),
    )
    return Part("head", ("llama-server",), command, (job.cluster.port,))


def _rpc(job: Job) -> tuple[str, ...]:
    """The workers, and all layers given to them unless the lane says how many."""
    workers = job.seats[1:]
    if not workers:
        return ()
    port = _rpc_port(job.lane)
    offload = () if {"n-gpu-layers", "gpu-layers", "ngl"} & set(job.args) else ("--n-gpu-layers", "99")
    return ("--rpc", ",".join(f"{seat.address}:{port}" for seat in workers), *offload)


def _boot_order(job: Job) -> tuple[tuple[int, ...], ...]:
    workers = tuple(seat.index for seat in job.seats[1:])
    return (workers, (0,)) if workers else ((0,),)


ENGINE = Engine(
    "llamacpp",
    "llama.cpp: llama-server, with RPC workers on further nodes",
    _faults,
    _part,
    _boot_order,
    phases=PHASES,
    fatal=FATAL,
)
