"""Commands of `fleet` on simulated nodes made from a spec, yours or an example: nothing real is reached or changed.

    python -m examples.simulated examples/dgx-lab/fleet.yaml 'apply --yes' 'plan --file examples/dgx-lab/evening.yaml'

The nodes are as the spec declares them, in good order, with whole models. Every image of the lanes can be had; local
builds are on each node; engines know what their probes expect, as `expect` or in plain words of `expect_regex` (of
`http` and `expect_json` they know the OpenAI API alone). The program of a `custom` lane is not known: such a lane can
be planned, and ends at once. The commands run one after the other on the same nodes, in virtual time; `--file` is the
first spec where a command names none. What they record is thrown away.
"""

import argparse
import functools
import json
import os
import re
import shlex
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import specs
from reconciler.cli.main import run
from reconciler.cli.wiring import Wiring
from reconciler.core.desired import ContainerSpec
from reconciler.core.host import ROCE_V2, Gid, Interface, RdmaPort
from reconciler.core.models import ModelFacts, ModelFile, ModelPlace
from reconciler.engines import RULES
from reconciler.testing import (
    Behaviour,
    Serves,
    SimImage,
    SimNodeConfig,
    SimulatedFleet,
    engine_behaviour,
    run_simulated,
)
from specs.paths import normal_path, placeholders

SEED = 7
IMAGE_BYTES = 15_200_000_000
"""As images of inference engines go: 14.2 GiB compressed."""

WEIGHT_BYTES = 5 * 10**9
MEMORY_BYTES = 128 * 2**30
"""Of a node that does not say."""


def images_of(spec: specs.Spec) -> list[SimImage]:
    """The images of all lanes, built for each platform that the fleet has."""
    platforms = sorted({node.platform for node in spec.nodes.values()})
    answers = _answers(spec)
    found = {lane.image.digest: _image(lane.image, platforms, answers) for lane in spec.lanes.values()}
    return list(found.values())


def _answers(spec: specs.Spec) -> dict[str, str]:
    """To each question of the lanes' probes, what it expects."""
    probes = [probe for lane in spec.lanes.values() for probe in lane.health.probes]
    expected = {probe.chat or probe.completion or "": _expected(probe) for probe in probes}
    return {question: f" {answer}." for question, answer in expected.items() if answer}


def _expected(probe: specs.Probe) -> str:
    """`expect`, or the first branch of `expect_regex` that matches as it is written; empty where there is none."""
    if probe.expect is not None or probe.expect_regex is None:
        return probe.expect or ""
    branches = probe.expect_regex.split("|")
    return next((branch for branch in branches if re.search(probe.expect_regex, branch)), "")


def simulated(spec: specs.Spec, images: Sequence[SimImage]) -> SimulatedFleet:
    """The nodes of a spec, and a registry with these images."""
    local = tuple(image.digest for image in images if image.is_local)
    fleet = SimulatedFleet([_node(name, node, local) for name, node in spec.nodes.items()], images, SEED)
    for name, node in spec.nodes.items():
        machine = fleet.node(name)
        machine.host = replace(machine.host, rdma=tuple(_ports(node, _gid(spec, name))))
        machine.models.models.update(_models(spec, node))
    return fleet


def wiring(fleet: SimulatedFleet) -> Wiring:
    """How commands come to the simulated nodes."""
    return Wiring(connect=lambda spec: fleet, run=functools.partial(run_simulated, seed=SEED))


def _gid(spec: specs.Spec, node: str) -> int:
    """The GID index that the clusters of a node want."""
    wanted = (cluster.nccl.gid_index for cluster in spec.clusters.values() if node in cluster.nodes)
    return next((index for index in wanted if index is not None), 0)


def _image(image: specs.ImageRef, platforms: list[str], answers: dict[str, str]) -> SimImage:
    def behave(container: ContainerSpec) -> Behaviour:
        found = engine_behaviour(container)
        return replace(found, answers={**answers, **found.answers}) if isinstance(found, Serves) else found

    return SimImage(
        image.text,
        image.digest,
        tuple((platform, IMAGE_BYTES) for platform in platforms),
        behave,
        is_local=image.kind == "id",
    )


def _node(name: str, node: specs.Node, local: tuple[str, ...]) -> SimNodeConfig:
    wires = tuple(Interface(item.name, True, (str(item.address),)) for item in node.interfaces.values())
    return SimNodeConfig(
        name,
        node.ssh.host,
        node.platform,
        "containerd",
        node.gpus,
        MEMORY_BYTES if node.memory is None else node.memory,
        images=local,
        interfaces=wires,
    )


def _ports(node: specs.Node, gid: int) -> list[RdmaPort]:
    return [
        RdmaPort(device, 1, "ACTIVE", "Ethernet", (Gid(gid, str(item.address), ROCE_V2, item.name),))
        for item in node.interfaces.values()
        for device in (item.hca or "").split(",")
        if device
    ]


def _models(spec: specs.Spec, node: specs.Node) -> Iterator[tuple[str, ModelFacts]]:
    """Each model that is a path, as if it were there: whole, with what the spec says of its files."""
    for model in spec.models.values():
        if model.path is None or not set(placeholders(model.path)) <= node.paths.keys():
            continue
        known = tuple(ModelFile(path, 1024, digest) for path, digest in sorted(model.verify.items()))
        weights = ModelFile("model-00001-of-00001.safetensors", WEIGHT_BYTES)
        path = normal_path(node.expand(model.path))
        yield path, ModelFacts(ModelPlace(path, path), "folder", (*known, weights), config=json.dumps(model.config))


def main() -> int:
    """Run the commands; the exit code of the last one."""
    parser = argparse.ArgumentParser(
        prog="python -m examples.simulated",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("spec", type=Path, help="the spec to make the nodes from")
    parser.add_argument("commands", nargs="+", metavar="COMMAND", help="a command in quotes, such as 'plan --json'")
    wanted = parser.parse_args()
    try:
        spec = specs.load(wanted.spec, RULES)
    except specs.SpecErrors as errors:
        sys.stderr.write(f"{errors}\n")
        return 1
    with tempfile.TemporaryDirectory(prefix="fleet-simulated-") as folder:
        os.environ.update(FLEET_STATE=f"{folder}/state", FLEET_VAULT=f"{folder}/vault", FLEET_FILE=str(wanted.spec))
        nodes = wiring(simulated(spec, images_of(spec)))
        return [_told(shlex.split(command), nodes) for command in wanted.commands][-1]


def _told(words: list[str], nodes: Wiring) -> int:
    sys.stdout.write(f"$ fleet {shlex.join(words)}\n")
    sys.stdout.flush()
    code = run(words, nodes)
    sys.stdout.write(f"(exit {code})\n\n")
    return code


if __name__ == "__main__":
    sys.exit(main())
