"""SGLang: `python3 -m sglang.launch_server` on every rank, all with the same arguments but `--node-rank`.

Flags after SGLang's documentation and source of 2026 (0.4 to 0.5; "Server arguments", `server_args.py`,
`entrypoints/engine.py`). Rank 0 serves. Every other rank, when its part of the model is loaded, opens a small HTTP
server at the same host and port whose `/health` answers 200: that is how a worker tells that it is up.
"""

from collections.abc import Iterator

import specs
from reconciler.core.desired import Endpoint, Preflight
from reconciler.engines import parsing, torch
from reconciler.engines.arguments import ArgumentRules, Given, Pair, argument_faults, given
from reconciler.engines.base import Engine, Fault, Job, Part, Phase, Seat, fabric_env
from reconciler.engines.drafts import args_of
from reconciler.engines.flags import Style, flags

PROGRAM = ("python3", "-m", "sglang.launch_server")

STYLE = Style(negates=False)
"""Its switches have no `--no-` form: one that is false is left out."""

_MEET = "the cluster's `rendezvous_port` and the head of its nodes"
_NO_HTTP = "The lane's users, and the health gate, come by plain HTTP at the cluster's port."

RULES = ArgumentRules(
    aliases={
        "model": "model-path",
        "tp": "tp-size",
        "tensor-parallel-size": "tp-size",
        "pp": "pp-size",
        "pipeline-parallel-size": "pp-size",
        "dp": "dp-size",
        "data-parallel-size": "dp-size",
        "ep": "ep-size",
        "expert-parallel-size": "ep-size",
    },
    owned={
        "model-path": "`model` of the lane",
        "served-model-name": "`served_name` of the lane",
        "revision": "`revision` of the model",
        "tp-size": "`parallel.tensor` of the lane",
        "pp-size": "`parallel.pipeline` of the lane",
        "dp-size": "`parallel.data` of the lane",
        "ep-size": "`parallel.expert` of the lane",
        "nccl-init-addr": _MEET,
    },
    refused={
        "grpc-mode": _NO_HTTP,
        "smg-grpc-mode": _NO_HTTP,
        "ssl-keyfile": _NO_HTTP,
        "ssl-certfile": _NO_HTTP,
        "use-ray": "The ranks of a lane find each other by the cluster's rendezvous, without Ray.",
        "api-key": "The health gate asks without a key, so that it would never be answered; and the key would stand in "
        "plans and labels.",
    },
    exclusive=(
        Pair(
            "enable-hierarchical-cache",
            "disable-radix-cache",
            "SGLang refuses them together: the one extends the cache that the other turns off.",
        ),
    ),
)

OWNED_ENV = {
    "SGLANG_HOST_IP": "the `address` of the interface of each node",
    "SGLANG_BLOCK_NONZERO_RANK_CHILDREN": "the order of the cluster's `nodes`: at 0 workers end as soon as they are up",
}

PHASES = (
    Phase("image", r"server_args=ServerArgs\(|Init torch distributed begin"),
    Phase("weights", r"Load weight begin"),
    Phase("load", r"checkpoint shards: "),
    Phase("compile", r"Load weight end|KV Cache is allocated|[Aa]utotun(e|ing)\b"),
    Phase("capture", r"Capture .*(cuda|CUDA) graph begin|Capturing batches"),
    Phase("api", r"Uvicorn running on|[Dd]ummy health check server|fired up and ready to roll"),
)

FATAL = (
    r"Received sigquit from a child process",
    r"Scheduler hit an exception",
    r"Scheduler or DataParallelController \d+ terminated with",
    r"Not enough memory\. Please try",
    r"(launch_server(\.py)?|sglang serve): error: ",
)
"""After these the server ends, or will never answer."""


def _faults(lane: specs.Lane, model: specs.Model | None) -> Iterator[Fault]:
    if lane.model is None:
        yield Fault(("engine",), "sglang needs a model", "It serves one model's folder.", "set `model` of the lane")
    for name in lane.ports:
        yield Fault(("ports", name), f"sglang has no port named '{name}'", hint="take it out")
    args = given(lane, model, RULES.aliases)
    yield from argument_faults(lane, model, RULES)
    yield from _data_faults(lane, args)


def _data_faults(lane: specs.Lane, args: dict[str, Given]) -> Iterator[Fault]:
    attention = args.get("enable-dp-attention")
    if lane.parallel.data > 1 and lane.node_count > 1 and (attention is None or attention.value is False):
        yield Fault(
            ("parallel", "data"),
            "SGLang does data parallel over several nodes with `enable-dp-attention` only",
            "Then the replicas share the GPUs of tensor parallel, so the lane says its `nodes` itself.",
            "set `enable-dp-attention: true` in `args`, or place a lane of its own on each node",
        )


def _part(job: Job, seat: Seat) -> Part:
    meeting = (job.cluster.rendezvous_port,) if job.is_spread and seat.index == 0 else ()
    part = Part(
        role="head" if seat.index == 0 else "worker",
        program=job.entrypoint(seat) or PROGRAM,
        command=_words(job, seat),
        ports=(job.cluster.port, *meeting),
        env=fabric_env(job, seat),
        has_entrypoint=True,
    )
    return torch.furnished(job, seat, part)


def _words(job: Job, seat: Seat) -> tuple[str, ...]:
    return (
        *("--model-path", job.model_path(seat)),
        *job.revision_words,
        *("--served-model-name", job.served_name),
        *("--host", "0.0.0.0", "--port", str(job.cluster.port)),  # noqa: S104 - lanes serve the network of their node
        *_parallel(job),
        *(_meeting(job, seat) if job.is_spread else ()),
        *flags(args_of(job, seat), STYLE),
    )


def _parallel(job: Job) -> Iterator[str]:
    """Yield the degrees that are not one."""
    parallel = job.lane.parallel
    degrees = (
        ("--tp-size", parallel.tensor),
        ("--pp-size", parallel.pipeline),
        ("--dp-size", parallel.data),
        ("--ep-size", parallel.expert),
    )
    return (word for flag, degree in degrees if degree > 1 for word in (flag, str(degree)))


def _meeting(job: Job, seat: Seat) -> tuple[str, ...]:
    """Who this rank is and where all meet."""
    host = f"[{job.head.address}]" if ":" in job.head.address else job.head.address
    meet = f"{host}:{job.cluster.rendezvous_port}"
    return ("--dist-init-addr", meet, "--nnodes", str(len(job.seats)), "--node-rank", str(seat.index))


def _boot_order(job: Job) -> tuple[tuple[int, ...], ...]:
    """All at once: every rank waits for the others at the rendezvous."""
    return (tuple(seat.index for seat in job.seats),)


def _endpoints(job: Job, seat: Seat) -> tuple[Endpoint, ...]:
    """The workers' own page; the head's is the gate's."""
    return () if seat.index == 0 else (Endpoint(job.cluster.port, "/health"),)


def _preflight(job: Job) -> Preflight:
    return parsing.sglang_preflight(job.entrypoint(job.head) or PROGRAM, _words(job, job.head))


ENGINE = Engine(
    "sglang",
    "SGLang: one server over all nodes",
    _faults,
    _part,
    _boot_order,
    phases=PHASES,
    fatal=FATAL,
    preflight=_preflight,
    endpoints=_endpoints,
    owned_env=OWNED_ENV,
)
