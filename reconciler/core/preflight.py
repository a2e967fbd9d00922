"""The preflight of a gang: its image tries out a rank's command line in a container of its own, before anything stops.

Such a container is no rank and never counts as one: it has no `Owner` but a mark of its own, so all that looks for
ranks passes it by. It is gone when its step ends. What a killed controller leaves of one is removed by the next apply:
by the same step when it is tried again, else by one of `clearing`.
"""

from collections.abc import Container as Holds
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from reconciler.core.canonical import canonical_json
from reconciler.core.desired import ContainerSpec, Desired, Gang, Preflight
from reconciler.core.identity import PREFIX
from reconciler.core.observed import Observed, PreflightMark
from reconciler.core.plan import Change, Kind, Op, Phase, Step

SUFFIX = ".preflight"
"""The end of its name, which no rank's has."""

NO_GPUS = ("NVIDIA_VISIBLE_DEVICES", "void")
"""Where NVIDIA's runtime is the default one, an image that asks for all GPUs in its own environment gets none by this
(https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/docker-specialized.html).
"""

LEFT = "an interrupted preflight has left it"


def preflight_name(gang: Gang) -> str:
    """The container's name. Deterministic, so that a lost reply is settled by looking."""
    return f"fleet-{gang.cluster}-{gang.lane}{SUFFIX}"


def preflight_container(gang: Gang, preflight: Preflight) -> ContainerSpec:
    """What runs: the rank's own image, mounts and environment with another command, without GPUs and devices."""
    container = gang.ranks[preflight.rank].container
    env = tuple(sorted({**dict(container.env), NO_GPUS[0]: NO_GPUS[1]}.items()))
    return replace(container, entrypoint=preflight.entrypoint, command=preflight.command, env=env, devices=(), gpus=0)


def preflight_labels(fleet: str, gang: Gang, container: ContainerSpec, operation: str) -> dict[str, str]:
    """Its labels. Too few for a rank's: who reads them as such finds nobody's container."""
    return {
        PREFIX + "fleet": fleet,
        PREFIX + "lane": gang.lane,
        PREFIX + "cluster": gang.cluster,
        PREFIX + "operation": operation,
        PREFIX + "preflight": "1",
        PREFIX + "spec": canonical_json(container),
    }


def preflight_mark(name: str, labels: Mapping[str, str]) -> PreflightMark | None:
    """What a container's name and labels say of the preflight it is; None for any other container."""
    if not name.endswith(SUFFIX) or labels.get(PREFIX + "preflight") != "1":
        return None
    keys = ("fleet", "cluster", "lane", "operation")
    found = [labels.get(PREFIX + key, "") for key in keys]
    fleet, cluster, lane, operation = found
    return PreflightMark(fleet, f"{cluster}/{lane}", operation) if all(found) else None


def preflight_step(gang: Gang, preflight: Preflight, reason: str, requires: tuple[str, ...]) -> Step:
    """Try the gang's command line out once its image is there."""
    node = gang.ranks[preflight.rank].node
    step_id = f"{gang.address}/{Phase.STAGE}/{node}/{Op.PREFLIGHT}"
    step = Step(step_id, gang.address, Phase.STAGE, Op.PREFLIGHT, node, preflight_name(gang), reason, requires)
    return replace(step, rank=preflight.rank)


def clearing(desired: Desired, observed: Observed, steps: Iterable[Step]) -> tuple[Step, ...]:
    """Remove what is left of preflights, but for those that a step among `steps` runs again and so removes itself."""
    again = {(step.node, step.target) for step in steps if step.op is Op.PREFLIGHT}
    return tuple(step for step in _left(desired, observed) if (step.node, step.target) not in again)


def _left(desired: Desired, observed: Observed) -> Iterator[Step]:
    for node in sorted(observed.nodes):
        facts = observed.facts(node)
        for item in sorted(facts.containers if facts else (), key=lambda found: found.name):
            if item.preflight is not None and item.preflight.fleet == desired.fleet:
                gang = item.preflight.gang
                step_id = f"{gang}/{Phase.RETIRE}/{node}/{Op.REMOVE}/{item.name}"
                step = Step(step_id, gang, Phase.RETIRE, Op.REMOVE, node, item.name, LEFT)
                yield replace(step, container_id=item.id)


def clearing_changes(steps: Iterable[Step], told: Holds[str]) -> Iterator[Change]:
    """Of the gangs of which nothing is told yet: that something of theirs is cleaned up."""
    nodes: dict[str, list[str]] = {}
    for step in steps:
        if step.gang not in told:
            nodes.setdefault(step.gang, []).append(step.node or "")
    for gang, found in nodes.items():
        yield Change(gang, Kind.CLEAN, LEFT, tuple(dict.fromkeys(found)))
