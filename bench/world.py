"""A big fleet, as a spec and as observed."""

import hashlib

from reconciler.core import identity
from reconciler.core.desired import Desired, Gang, RankSpec
from reconciler.core.observed import Container, Gpu, LocalImage, NodeFacts, Observed

LANE_NODES = 4
DIGEST = "sha256:" + "7" * 64


def big_fleet_text(nodes: int) -> str:
    """The spec: a lane on every four nodes."""
    lines = ["fleet: big", "nodes:"]
    for number in range(nodes):
        address = f"10.{number // 65536}.{number // 256 % 256}.{number % 256}"
        lines.append(
            f"  n{number}: {{ssh: {{host: n{number}.lan, user: ops}}, platform: linux/arm64, gpus: 1, "
            f"interfaces: {{f0: {{name: enp1s0, hca: rocep1s0, address: {address}}}}}, paths: {{models: /models}}}}"
        )
    groups = range(nodes // LANE_NODES)
    lines += ["models:", "  m: {path: '{paths.models}/m.gguf', args: {ctx-size: 4096}}", "clusters:"]
    for group in groups:
        members = ", ".join(f"n{LANE_NODES * group + item}" for item in range(LANE_NODES))
        lines.append(f"  c{group}: {{nodes: [{members}], interface: f0}}")
    lines.append("lanes:")
    for group in groups:
        lines.append(
            f"  l{group}: {{engine: llamacpp, image: 'ghcr.io/example/llamacpp@{DIGEST}', model: m, "
            f"nodes: {LANE_NODES}, env: {{A: b, C: d}}, memory: 64GiB, "
            f"mounts: [{{source: '{{paths.models}}', target: /models}}], "
            f"health: {{boot: 40m, probes: [{{chat: 'What is the capital of France?', expect: Paris}}]}}}}"
        )
    lines.append("placements:")
    lines += [f"  - {{lane: l{group}, cluster: c{group}}}" for group in groups]
    return "\n".join(lines) + "\n"


def observed_of(desired: Desired) -> Observed:
    """A third of the lanes as wanted, a third with other arguments, a third not there."""
    nodes: dict[str, NodeFacts] = {}
    for number, gang in enumerate(desired.gangs):
        for rank in gang.ranks:
            containers = () if number % 3 == 2 else (_container(desired.fleet, gang, rank, is_old=number % 3 == 1),)
            nodes[rank.node] = _facts(rank, containers)
    return Observed(nodes, {})


def _container(fleet: str, gang: Gang, rank: RankSpec, *, is_old: bool) -> Container:
    marks = identity.labels(fleet, gang, rank, 1, "op", "sha256:" + "1" * 64)
    if is_old:
        marks["fleet.fingerprint"] = "0" * 64
    spec = rank.container
    name = identity.container_name(gang.lane, rank.index, 1)
    return Container(
        id=hashlib.sha256(f"{gang.address} {rank.index}".encode()).hexdigest(),
        name=name,
        state="running",
        image_id="sha256:" + "1" * 64,
        owner=identity.owner_of(marks),
        entrypoint=spec.entrypoint,
        command=(*spec.command[:-1], "other") if is_old else spec.command,
        env=spec.env,
        mounts=spec.mounts,
        gpus=spec.gpus,
    )


def _facts(rank: RankSpec, containers: tuple[Container, ...]) -> NodeFacts:
    return NodeFacts(
        node=rank.node,
        platform="linux/arm64",
        boot_id="boot",
        store="classic",
        docker_version="28.5.0",
        docker_root="/var/lib/docker",
        disk_free_bytes=10**12,
        memory_available_bytes=120 * 2**30,
        memory_total_bytes=128 * 2**30,
        containers=containers,
        images=(LocalImage("sha256:" + "1" * 64, (DIGEST,)),),
        gpus=(Gpu("NVIDIA GB10"),),
    )
