"""vLLM: `vllm serve` on the head; on several nodes with multiprocessing (headless workers) or with Ray.

Flags after vLLM's documentation and source of 2026 (0.1x to 0.32; "Parallelism and scaling", "Data parallel
deployment", `vllm/engine/arg_utils.py`): with `--nnodes` each rank gets the same arguments but its `--node-rank`, which
share of tensor, pipeline and data parallel it carries vLLM infers; workers are `--headless` and have no HTTP port. A
headless rank outlives a dead head (vllm-project/vllm#32136): `fleet` judges and stops the gang as a whole.
"""

from collections.abc import Iterator

import specs
from reconciler.core.desired import EnvValue, Preflight, Ready
from reconciler.engines import parsing, ray, torch
from reconciler.engines.arguments import Given, argument_faults, given
from reconciler.engines.base import Engine, Fault, Job, Part, Phase, Seat, fabric_env
from reconciler.engines.drafts import args_of
from reconciler.engines.flags import flags
from reconciler.engines.vllm_arguments import HEAD_ONLY, OWNED_ENV, RULES, STYLE, batch_faults

PROGRAM = ("vllm", "serve")

DATA_PORT = 29550
"""vLLM's own default for the handshake of data parallel engines; `ports: {data: ...}` of the lane sets another."""

PORTS = {"data": DATA_PORT, "ray": ray.PORT}
BACKENDS = ("mp", "ray")

PHASES = (
    Phase("image", r"vLLM (API )?server version|Launching vLLM .*headless|^ray: |non-default args: "),
    Phase("weights", r"Starting to load model"),
    Phase("load", r"Loading .*checkpoint shards|Loading weights took"),
    Phase("compile", r"Model loading took|torch\.compile took|Dynamo bytecode transform|[Aa]utotun(er|ing)\b"),
    Phase("capture", r"Capturing CUDA graph|Graph capturing finished"),
    Phase("api", r"Starting vLLM (API )?server|Application startup complete"),
)

FATAL = (
    r"EngineCore (failed to start|encountered a fatal error)",
    r"Engine core initialization failed",
    r"WorkerProc initialization failed",
    r"No available memory for the cache blocks",
    r"larger than the maximum number of tokens that can be stored in KV cache",
    r"is less than desired GPU memory utilization",
    r"ValueError: .* are mutually exclusive",
    r"vllm( serve)?: error: |serve: error: unrecognized arguments",
    ray.NOT_ALL_JOINED,
)
"""After these the engine ends, though its other processes may linger."""


def _faults(lane: specs.Lane, model: specs.Model | None) -> Iterator[Fault]:
    if lane.model is None:
        yield Fault(("engine",), "vllm needs a model", "It serves one model's folder.", "set `model` of the lane")
    for name in lane.ports:
        if name not in PORTS:
            known = "`data` (data parallel) and `ray`"
            yield Fault(("ports", name), f"vllm has no port named '{name}'", hint=f"it has {known}")
    args = given(lane, model, RULES.aliases)
    yield from argument_faults(lane, model, RULES)
    yield from batch_faults(args)
    yield from _expert_faults(lane, args)
    yield from _backend_faults(lane, args)


def _expert_faults(lane: specs.Lane, args: dict[str, Given]) -> Iterator[Fault]:
    spread = lane.parallel.tensor * lane.parallel.data
    if lane.parallel.expert not in (1, spread):
        yield Fault(
            ("parallel", "expert"),
            f"vLLM spreads experts over tensor x data = {spread}, not over {lane.parallel.expert}",
            "It is a switch there: the experts are split as far as the tensors and replicas go, or not at all.",
            f"write {spread}, or leave it out",
        )
    balancing = args.get("enable-eplb")
    if balancing is not None and balancing.value is not False and lane.parallel.expert == 1:
        summary = f"`{balancing.spelling}` needs `parallel.expert`"
        yield Fault(balancing.loc, summary, "It balances experts that are spread.", f"set `expert: {spread}`")


def _backend_faults(lane: specs.Lane, args: dict[str, Given]) -> Iterator[Fault]:
    yield from _data_backend_faults(lane, args)
    backend = args.get("distributed-executor-backend")
    if backend is None or lane.node_count == 1:
        return
    if backend.value not in BACKENDS:
        summary = f"on several nodes `{backend.spelling}` is mp or ray, not {backend.value}"
        yield Fault(backend.loc, summary, hint="leave it out for mp")


def _data_backend_faults(lane: specs.Lane, args: dict[str, Given]) -> Iterator[Fault]:
    data, backend = args.get("data-parallel-backend"), args.get("distributed-executor-backend")
    is_ray = backend is not None and backend.value == "ray"
    if data is not None and data.value == "ray" and lane.node_count > 1 and not is_ray:
        yield Fault(
            data.loc,
            f"`{data.spelling}: ray` needs `distributed-executor-backend: ray`",
            "With multiprocessing over several nodes vLLM takes mp only.",
            "set both, or neither",
        )


def _is_ray(job: Job) -> bool:
    return job.is_spread and job.args.get("distributed-executor-backend") == "ray"


def _part(job: Job, seat: Seat) -> Part:
    program = job.entrypoint(seat) or PROGRAM
    part = _ray_part(job, seat, program) if _is_ray(job) else _mp_part(job, seat, program)
    return torch.furnished(job, seat, part)


def _mp_part(job: Job, seat: Seat, program: tuple[str, ...]) -> Part:
    return Part(
        role="head" if seat.index == 0 else "worker",
        program=program,
        command=_words(job, seat),
        ports=_ports(job) if seat.index == 0 else (),
        env=_env(job, seat),
        has_entrypoint=True,
    )


def _ray_part(job: Job, seat: Seat, program: tuple[str, ...]) -> Part:
    """The head opens the cluster's store first, and becomes vLLM when all workers have joined."""
    port, env = _port(job, "ray"), _env(job, seat)
    if seat.index != 0:
        start, words = ray.worker(job.head.address, port, seat.address)
        return Part("worker", start, words, env=env, has_entrypoint=True)
    start, words = ray.head(seat.address, port, len(job.seats), (*program, *_words(job, seat)))
    return Part("head", start, words, (job.cluster.port, port), Ready(port), env, has_entrypoint=True)


def _words(job: Job, seat: Seat) -> tuple[str, ...]:
    """The arguments of `vllm serve`, in a fixed order: model, names, parallelism, meeting, and the lane's own."""
    served = ("--host", "0.0.0.0", "--port", str(job.cluster.port))  # noqa: S104 - as llamacpp
    http = served if seat.index == 0 else ("--headless",)
    return (
        job.model_path(seat),
        *job.revision_words,
        *("--served-model-name", job.served_name),
        *http,
        *_parallel(job),
        *(() if _is_ray(job) or not job.is_spread else _meeting(job, seat)),
        *flags(_own(job, seat), STYLE),
    )


def _own(job: Job, seat: Seat) -> dict[str, object]:
    """The lane's arguments; aliases in full, for with two dashes they would be read as the beginning of another."""
    named = {RULES.aliases.get(name, name): value for name, value in args_of(job, seat).items()}
    return {name: value for name, value in named.items() if seat.index == 0 or name.replace("_", "-") not in HEAD_ONLY}


def _parallel(job: Job) -> Iterator[str]:
    """Yield the degrees that are not one."""
    parallel = job.lane.parallel
    for flag, degree in (
        ("--tensor-parallel-size", parallel.tensor),
        ("--pipeline-parallel-size", parallel.pipeline),
        ("--data-parallel-size", parallel.data),
    ):
        if degree > 1:
            yield from (flag, str(degree))
    if parallel.expert > 1:
        yield "--enable-expert-parallel"


def _meeting(job: Job, seat: Seat) -> Iterator[str]:
    """Yield who this rank is and where all meet."""
    yield from ("--nnodes", str(len(job.seats)), "--node-rank", str(seat.index))
    yield from ("--master-addr", job.head.address, "--master-port", str(job.cluster.rendezvous_port))
    if job.lane.parallel.data > 1:
        yield from ("--data-parallel-rpc-port", str(_port(job, "data")))
    if "distributed-executor-backend" not in job.args:
        yield from ("--distributed-executor-backend", "mp")


def _ports(job: Job) -> tuple[int, ...]:
    """What the head listens on at known ports."""
    meeting = (job.cluster.rendezvous_port,) if job.is_spread else ()
    data = (_port(job, "data"),) if job.is_spread and job.lane.parallel.data > 1 else ()
    return (job.cluster.port, *meeting, *data)


def _port(job: Job, name: str) -> int:
    return job.lane.ports.get(name, PORTS[name])


def _env(job: Job, seat: Seat) -> tuple[tuple[str, EnvValue], ...]:
    """The fabric, and the rank's own address there: else vLLM takes the address of the default route."""
    own = (("VLLM_HOST_IP", seat.address),) if job.is_spread and seat.interface is not None else ()
    return (*fabric_env(job, seat), *own)


def _boot_order(job: Job) -> tuple[tuple[int, ...], ...]:
    """All at once: workers wait for the head's rendezvous by themselves. With Ray the head's store has to be there."""
    ranks = tuple(seat.index for seat in job.seats)
    return (ranks[:1], ranks[1:]) if _is_ray(job) else (ranks,)


def _preflight(job: Job) -> Preflight:
    return parsing.vllm_preflight(job.entrypoint(job.head) or PROGRAM, _words(job, job.head))


ENGINE = Engine(
    "vllm",
    "vLLM: one server over all nodes, with multiprocessing or Ray",
    _faults,
    _part,
    _boot_order,
    phases=PHASES,
    fatal=FATAL,
    preflight=_preflight,
    owned_env=OWNED_ENV,
)
