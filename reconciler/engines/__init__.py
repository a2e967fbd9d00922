"""The engines by name, and the door from a spec to what is desired."""

import difflib
import shlex
from collections.abc import Iterator
from dataclasses import replace

import specs
from reconciler.core.canonical import canonical_json
from reconciler.core.desired import (
    Desired,
    Gang,
    HealthGate,
    Ignore,
    NodeDeclaration,
    Preflight,
    RankSpec,
    Silence,
    TransferSettings,
    Wire,
)
from reconciler.core.lock import NO_LOCK, Lock
from reconciler.core.probes import Kind, Limits, Performance, Probe, Request
from reconciler.engines import custom, llamacpp, models, sglang, vllm
from reconciler.engines.base import Engine, Fault, Job, Seat, container
from reconciler.engines.drafts import draft_faults
from reconciler.engines.limits import LIMITS
from reconciler.engines.placeholders import preflight_faults
from reconciler.engines.ports import Opened, collisions
from reconciler.engines.templates import filled, values

__all__ = ["ENGINES", "RULES", "Engine", "desired_fleet"]

ENGINES: dict[str, Engine] = {
    engine.name: engine for engine in (vllm.ENGINE, sglang.ENGINE, llamacpp.ENGINE, custom.ENGINE)
}
"""Every engine that a lane can name. Adding one is one module and one entry here."""


def desired_fleet(spec: specs.Spec, lock: Lock = NO_LOCK) -> Desired:
    """Everything the spec wants, rendered to containers; its images with the content that `lock` has of them.

    The spec was loaded with `RULES`. Raises KeyError for an engine that does not exist.
    """
    nodes = tuple(
        NodeDeclaration(name, node.platform, node.gpus, node.memory, wires=_wires(node))
        for name, node in sorted(spec.nodes.items())
    )
    gangs = tuple(sorted((_gang(spec, lock, item) for item in spec.placements), key=lambda gang: gang.address))
    transfer = TransferSettings(spec.images.uplink, spec.images.unpack, spec.images.relay)
    return Desired(
        fleet=spec.fleet,
        spec_fingerprint=spec.fingerprint,
        nodes=nodes,
        gangs=gangs,
        transfer=transfer,
        retain=spec.retain,
        silences=tuple(
            Silence(item.check, item.address, item.reason, item.until.isoformat()) for item in spec.checks.silence
        ),
        ignores=tuple(
            Ignore(item.kind, item.address, item.field, item.reason, item.until.isoformat())
            for item in spec.drift.ignore
        ),
    )


def engines_exist(draft: specs.Draft) -> Iterator[specs.Diagnostic]:
    """Each lane, and each requirement of a model, names an engine there is."""
    wanted: dict[tuple[str | int, ...], str] = {
        ("lanes", name, "engine"): lane.engine for name, lane in draft.lanes.items()
    }
    named = (*draft.names("lanes", "*", "engine"), *draft.names("models", "*", "requires", "*", "engine"))
    for loc, name in {**dict(named), **wanted}.items():  # those of lanes with faults, too
        if name not in ENGINES:
            close = difflib.get_close_matches(name.lower(), ENGINES, 1, 0.4)
            hint = f"did you mean '{close[0]}'?" if close else f"known are {', '.join(sorted(ENGINES))}"
            yield draft.at(loc, f"unknown engine '{name}'", hint=hint)


def engines_can_work(draft: specs.Draft) -> Iterator[specs.Diagnostic]:
    """Each lane has what its engine needs, placed or not."""
    for name, lane in draft.lanes.items():
        engine = ENGINES.get(lane.engine)
        for fault in _faults(engine, lane, draft.models.get(lane.model or "")) if engine else ():
            yield draft.at(("lanes", name, *fault.loc), fault.summary, fault.detail, fault.hint)


def _faults(engine: Engine, lane: specs.Lane, model: specs.Model | None) -> Iterator[Fault]:
    yield from engine.faults(lane, model)
    yield from draft_faults(lane, model)
    yield from preflight_faults(lane, model)
    if not engine.takes_commands:
        written = (("argv", lane.argv), ("roles", lane.roles != specs.Roles()), ("order", lane.order))
        for key, value in written:
            if value:
                summary = f"{engine.name} makes its own command line"
                yield Fault((key,), summary, f"`{key}` is for engine custom.", "use `args`, or `engine: custom`")
    for key in lane.env:
        if (owner := engine.owned_env.get(key)) is not None:
            yield Fault(("env", key), f"`{key}` is no setting of a lane", f"It follows from {owner}.", "remove it here")


def engine_ports_differ(draft: specs.Draft) -> Iterator[specs.Diagnostic]:
    """The ports that engines open on a node, for lanes that share it, differ."""
    yield from collisions(
        draft, (rank for placed in draft.placed() if placed.lane.shares for rank in _opened(draft, placed))
    )


def _opened(draft: specs.Draft, placed: specs.Placed) -> Iterator[Opened]:
    """Yield what each rank listens on; nothing where a fault of the lane is in the way, which is said elsewhere."""
    placement, lane = placed.placement, placed.lane
    engine, model = ENGINES.get(lane.engine), draft.models.get(lane.model or "")
    if engine is None or (lane.model and model is None) or any(_faults(engine, lane, model)):
        return
    try:
        job = _job(draft, placement.lane, lane, placed.cluster, placed.nodes)
        parts = [(seat.name, engine.part(job, seat)) for seat in job.seats]
    except KeyError:  # a node, an interface or a path that is not there
        return
    for node, part in parts:
        yield Opened(placed.index, placement.lane, placement.cluster, node, part.role, part.ports)


RULES: tuple[specs.Rule, ...] = (engines_exist, engines_can_work, engine_ports_differ, *LIMITS)
"""What engines ask of a spec, for `specs.load`."""


def _gang(spec: specs.Spec, lock: Lock, placement: specs.Placement) -> Gang:
    lane, cluster = spec.lanes[placement.lane], spec.clusters[placement.cluster]
    job = _job(spec, placement.lane, lane, cluster, spec.nodes_of(placement))
    engine = ENGINES[lane.engine]
    return Gang(
        lane=placement.lane,
        cluster=placement.cluster,
        engine=lane.engine,
        ranks=tuple(_locked(_rank(job, engine, seat), lock) for seat in job.seats),
        boot_order=engine.boot_order(job),
        gate=_gate(job),
        url=f"http://{_bracketed(job.head.node.ssh.host)}:{cluster.port}/v1",
        shares=lane.shares,
        may_stop=placement.may_stop,
        preflight=_preflight(job, engine),
        shelves=tuple(models.shelves(job, _others(spec, cluster, job.seats))),
    )


def _preflight(job: Job, engine: Engine) -> Preflight | None:
    """The engine's, unless the lane has its own or wants none."""
    own = job.lane.preflight
    if own is False:
        return None
    found = engine.preflight(job)
    if isinstance(own, specs.Preflight):
        if own.command is not None:
            known = values(job, job.head)
            program, *words = (filled(word, known) for word in own.command)
            found = Preflight(job.head.index, (program,), tuple(words))
        if found is not None and own.deadline is not None:
            found = replace(found, deadline_s=own.deadline)
    return found


def _job(
    spec: specs.Spec | specs.Draft, name: str, lane: specs.Lane, cluster: specs.Cluster, nodes: tuple[str, ...]
) -> Job:
    """One lane on these nodes. Raises KeyError for what is not in the spec."""
    model = spec.models[lane.model] if lane.model else None
    seats = tuple(_seat(spec, cluster, index, node) for index, node in enumerate(nodes))
    return Job(name, lane, cluster, model, seats, spec.models[model.draft] if model and model.draft else None)


def _seat(spec: specs.Spec | specs.Draft, cluster: specs.Cluster, index: int, name: str) -> Seat:
    node = spec.nodes[name]
    interface = node.interfaces[cluster.interface] if cluster.interface else None
    return Seat(index, name, node, str(interface.address) if interface else node.ssh.host, interface)


def _others(spec: specs.Spec, cluster: specs.Cluster, seats: tuple[Seat, ...]) -> Iterator[Seat]:
    """Nodes of the cluster that the gang does not take."""
    taken = {seat.name for seat in seats}
    return (_seat(spec, cluster, -1, name) for name in cluster.nodes if name not in taken)


def _wires(node: specs.Node) -> tuple[Wire, ...]:
    """What the spec declares of the node, whether a cluster uses it or not."""
    return tuple(Wire(item.name, str(item.address)) for _, item in sorted(node.interfaces.items()))


def _wire(job: Job, seat: Seat) -> Wire | None:
    """A rank alone needs no RDMA."""
    wire = seat.interface
    if wire is None:
        return None
    hcas = tuple(wire.hca.split(",")) if wire.hca and len(job.seats) > 1 else ()
    return Wire(wire.name, str(wire.address), hcas, job.cluster.nccl.gid_index if hcas else None)


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _locked(rank: RankSpec, lock: Lock) -> RankSpec:
    container = rank.container
    return replace(rank, container=replace(container, image=lock.pinned(container.image)))


def _rank(job: Job, engine: Engine, seat: Seat) -> RankSpec:
    part = engine.part(job, seat)
    return RankSpec(
        index=seat.index,
        node=seat.name,
        role=part.role,
        address=seat.address,
        container=container(job, seat, part),
        ports=part.ports,
        ready=part.ready,
        memory_bytes=job.lane.memory,
        paths=job.node_paths(seat),
        stop_grace_s=job.lane.stop_grace if part.stop_grace_s is None else part.stop_grace_s,
        endpoints=engine.endpoints(job, seat),
        models=models.models_wanted(job, seat),
        wire=_wire(job, seat),
    )


def _gate(job: Job) -> HealthGate:
    health = job.lane.health
    return HealthGate(
        address="127.0.0.1",
        port=job.cluster.port,
        path=health.path,
        served_name=job.served_name if job.model or job.lane.served_name else None,
        probes=tuple(_probe(item) for item in health.probes),
        boot_s=health.boot,
        stall_s=health.stall,
        interval_s=health.interval,
        performance=_performance(health.performance) if health.performance else None,
    )


def _probe(probe: specs.Probe) -> Probe:
    kinds: dict[Kind, str | None] = {
        "chat": probe.chat,
        "completion": probe.completion,
        "embeddings": probe.embeddings,
        "http": f"{probe.http.method} {probe.http.path}" if probe.http else None,
        "command": shlex.join(probe.command) if probe.command else None,
    }
    kind, prompt = next((kind, text) for kind, text in kinds.items() if text is not None)
    return Probe(
        kind=kind,
        prompt=prompt,
        expect=probe.expect,
        expect_regex=probe.expect_regex,
        max_tokens=probe.max_tokens,
        timeout_s=probe.timeout,
        request=_request(probe.http) if probe.http else None,
        command=probe.command or (),
        expect_json=tuple((path, canonical_json(value)) for path, value in sorted(probe.expect_json.items())),
        never=probe.never,
        scripts=probe.scripts,
        limits=None if probe.limits == specs.Limits() else Limits(**probe.limits.model_dump()),
    )


def _request(http: specs.HttpProbe) -> Request:
    return Request(http.method, http.path, None if http.body is None else canonical_json(http.body), http.status)


def _performance(wanted: specs.Performance) -> Performance:
    return Performance(
        wanted.at_least, wanted.context, wanted.concurrency, wanted.tokens, wanted.required, wanted.timeout
    )
